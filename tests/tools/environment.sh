# A command substitution would open a pipe of its own, so the list goes through a file.
ls "/proc/$$/fd" >"$RAINCHECK_RESULT_FILE.open"
open=$(paste -sd, - <"$RAINCHECK_RESULT_FILE.open")
names=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/"\1"/p' | paste -sd, -)
printf '{"names":[%s],"open":[%s],"control":%s}' "$names" "$open" "$RAINCHECK_CONTROL_FD" >"$RAINCHECK_RESULT_FILE"
