"""What conv_torch.py and pool_torch.py share: how a call is timed."""
import time


def best(f, seconds):
    """The least processor time of one call, in seconds, after one that warms up."""
    f()
    least, spent = float("inf"), 0.0
    while spent < seconds:
        start = time.process_time()
        f()
        took = time.process_time() - start
        least = min(least, took)
        spent += took
    return least
