"""Chains of operators as models have them: a product or a sum over windows, and what follows it."""
from chain_forms import SMALL  # noqa: F401
from product_chains import models, products
from window_chains import images, transposed, videos


def chains():
    return images() + transposed() + videos() + products() + models()
