sleep 60 &
wait
