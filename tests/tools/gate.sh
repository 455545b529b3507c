# Waits for a file to appear, and leaves a mark each time it was run to its end.
path=$(sed 's/.*"open": *"\([^"]*\)".*/\1/')
echo "waiting"
while [ ! -e "$path" ]; do
    sleep 0.05
done
echo "$RAINCHECK_TASK_ID" >>"$path.ran"
echo '{"opened":true}' >"$RAINCHECK_RESULT_FILE"
