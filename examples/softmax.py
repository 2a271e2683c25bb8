"""What softmax.cl and softmax.cu must compute, in float64."""

import numpy as np


def softmax(sizes, arrays):
    x = arrays["x"]
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": powers / powers.sum(axis=1, keepdims=True)}
