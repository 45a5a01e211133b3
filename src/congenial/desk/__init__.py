"""The curator's desk: plan, price, review, publish and release in a browser on this machine.

Pages call the functions that the commands call; nothing can be done here only.
"""
