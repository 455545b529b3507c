for step in 1 2 3; do
    echo "step $step"
    echo "{\"progress\":{\"step\":$step,\"step_total\":3}}" >>"/dev/fd/$RAINCHECK_CONTROL_FD"
    echo "{\"partial\":{\"reached\":$step}}" >>"/dev/fd/$RAINCHECK_CONTROL_FD"
    sleep 0.3
done
echo "this is no control line" >>"/dev/fd/$RAINCHECK_CONTROL_FD"
