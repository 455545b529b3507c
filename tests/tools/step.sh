# Leaves a mark when it begins and, after its result, when it ends. A mark is one write.
inputs=$(cat)
field() { printf '%s' "$inputs" | sed "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/"; }
marks=$(field marks)
echo "begin $RAINCHECK_TASK_ID $RAINCHECK_ATTEMPT" >>"$marks"
sleep "$(field pause)"
printf '{"task":"%s"}' "$RAINCHECK_TASK_ID" >"$RAINCHECK_RESULT_FILE"
echo "end $RAINCHECK_TASK_ID $RAINCHECK_ATTEMPT" >>"$marks"
