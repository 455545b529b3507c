printf 'rendered\n' >"$RAINCHECK_ARTIFACTS_DIR/frames.txt"
ln -s /etc/passwd "$RAINCHECK_ARTIFACTS_DIR/passwd.txt"
printf '\033[31mred\033[0m\n'
