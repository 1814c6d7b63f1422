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

  /// Creates a source.
  /// - Parameter seed: any number; equal seeds give equal sequences.
  public init(seed: UInt64) { generator = Lock(SeededGenerator(seed: seed)) }

  /// The next 64 bits.
  public func next() -> UInt64 { generator.withLock { $0.next() } }

  /// A number from 0 up to, not including, `bound`; 0 when there is none.
  public func int(below bound: Int) -> Int { generator.withLock { $0.int(below: bound) } }

  /// A number in a range with both ends.
  public func int(in range: ClosedRange<Int>) -> Int { generator.withLock { $0.int(in: range) } }

  /// True with this probability; never for 0, always for 1.
  public func chance(_ probability: Double) -> Bool {
    generator.withLock { $0.chance(probability) }
  }

  /// One of the elements, or nil when there is none.
  public func pick<C: RandomAccessCollection>(_ elements: C) -> C.Element? {
    guard !elements.isEmpty else { return nil }
    let distance = int(below: elements.count)
    return elements[elements.index(elements.startIndex, offsetBy: distance)]
  }

  /// Puts the elements into a random order.
  public func shuffle<T>(_ elements: inout [T]) {
    var fork = SeededGenerator(seed: next())
    fork.shuffle(&elements)
  }

  /// That many bytes.
  public func bytes(_ count: Int) -> [UInt8] { generator.withLock { $0.bytes(count) } }

  /// A source of its own, whose numbers depend on this one's position only.
  public func fork() -> SeededRandom { SeededRandom(seed: next()) }
}
