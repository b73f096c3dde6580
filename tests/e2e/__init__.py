"""The proof: the program on the real engine and the real controllers, without a cloud."""
