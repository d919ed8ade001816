"""The drivers for OpenAI's two APIs and the servers that are compatible with them."""
