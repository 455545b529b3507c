echo "no such frame" >&2
exit 3
