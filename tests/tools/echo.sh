echo "reading"
cat >"$RAINCHECK_RESULT_FILE"
