"""How far an audit can be trusted: precision, recall and the noise rate, by label errors that were injected."""
