"""Facts about outputs, measured from people: the only room, beside the model and private training, that sees them."""
