/// The system's source of unpredictable numbers.
public struct SystemRandom: RandomSource {
  /// Creates the source.
  public init() {}

  /// Eight unpredictable bytes.
  public func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}
