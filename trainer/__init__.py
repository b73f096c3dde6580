"""The bundled trainer: one config file in, one run record out."""
