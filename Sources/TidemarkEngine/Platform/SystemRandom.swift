/// The system's source of unpredictable numbers.
package struct SystemRandom: RandomSource {
  /// Creates the source.
  package init() {}

  /// Eight unpredictable bytes.
  package func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}
