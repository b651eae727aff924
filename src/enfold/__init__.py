"""enfold keeps long conversations with language models inside the model's window and loses nothing."""
