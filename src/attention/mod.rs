//! Self-attention as a module, its masks, its initialisation and its conversion to the bilinear form.
