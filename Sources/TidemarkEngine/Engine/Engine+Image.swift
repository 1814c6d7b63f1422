extension Engine {
  /// Writes an index image that covers everything committed so far.
  package func writeImage() throws(TidemarkError) {}
}
