# Takes a second.
sleep 1
printf '{"lasted":true}' >"$RAINCHECK_RESULT_FILE"
