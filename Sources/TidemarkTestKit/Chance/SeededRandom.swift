public import TidemarkEngine

/// Chance that repeats: a ``SeededGenerator`` behind a lock, for a store under test.
///
/// ```swift
/// let random = SeededRandom(seed: 42)
/// let key = random.bytes(16)
/// if random.chance(0.1) { … }
/// ```
/// Threads that share one get its numbers in the order in which they ask; a test that must
/// repeat byte for byte runs on one thread or gives each thread a ``fork()`` of its own.
public final class SeededRandom: RandomSource, Sendable {
  private let generator: Lock<SeededGenerator>

  /// Creates a source of random numbers that repeat.
  /// - Parameter seed: any number; equal seeds give equal sequences.
  public init(seed: UInt64) { generator = Lock(SeededGenerator(seed: seed)) }

  /// Returns the next 64 random bits.
  public func next() -> UInt64 { generator.withLock { $0.next() } }

  /// Returns a random number from 0 to `bound` - 1, all equally likely; 0 if `bound` is not
  /// positive.
  public func int(below bound: Int) -> Int { generator.withLock { $0.int(below: bound) } }

  /// Returns a random number in a range, both ends included, all equally likely.
  public func int(in range: ClosedRange<Int>) -> Int { generator.withLock { $0.int(in: range) } }

  /// Returns true with a probability from 0 (never) to 1 (always).
  public func chance(_ probability: Double) -> Bool {
    generator.withLock { $0.chance(probability) }
  }

  /// Returns one of the elements at random; nil if there is none.
  public func pick<C: RandomAccessCollection>(_ elements: C) -> C.Element? {
    guard !elements.isEmpty else { return nil }
    let distance = int(below: elements.count)
    return elements[elements.index(elements.startIndex, offsetBy: distance)]
  }

  /// Puts the elements of an array into a random order.
  public func shuffle<T>(_ elements: inout [T]) {
    var fork = SeededGenerator(seed: next())
    fork.shuffle(&elements)
  }

  /// Returns `count` random bytes.
  public func bytes(_ count: Int) -> [UInt8] { generator.withLock { $0.bytes(count) } }

  /// Returns a new source, seeded with this source's next number, for a thread of its own.
  public func fork() -> SeededRandom { SeededRandom(seed: next()) }
}
