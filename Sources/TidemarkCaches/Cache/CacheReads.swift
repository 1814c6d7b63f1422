internal import TidemarkEngine

/// The policy and the counters of a cache, and a queue of reads that the LRU order (``UseOrder``)
/// has yet to apply. Striped by thread, so that concurrent hits contend for no lock or cache line.
struct CacheReads: Sendable {
  private struct Part {
    private let number: Int
    private let waiting: AtomicBits
    /// Uses that the order has yet to take in, with their times in nanoseconds since 1970.
    var uses: [(sequence: UInt64, time: Int64)] = []
    /// How many there ever were.
    private var noted = 0
    private(set) var defaultAge: Int64
    var counts = CacheCounts()
    var policy: CachePolicy { didSet { defaultAge = policy.maxAgeMilliseconds } }

    init(_ policy: CachePolicy, _ number: Int, _ waiting: AtomicBits) {
      (self.policy, self.number, self.waiting) = (policy, number, waiting)
      defaultAge = policy.maxAgeMilliseconds
    }

    mutating func countRead(isValid: Bool) {
      if isValid { counts.hits += 1 } else { counts.staleHits += 1 }
    }

    /// - Returns: how many wait, when it is time for the order to take them in; else nil.
    mutating func note(_ sequence: UInt64, at now: Timestamp) -> Int? {
      if uses.isEmpty { waiting.set(number) }
      let time = now.seconds &* 1_000_000_000 &+ Int64(now.nanoseconds)
      if uses.count < CacheReads.mostWaitingUses { uses.append((sequence, time)) }
      noted &+= 1
      return noted % CacheReads.usesPerTurn == 0 ? uses.count : nil
    }
  }

  /// The order takes in the uses after so many of a thread.
  static let usesPerTurn = 64
  /// While a thread has more that wait, further ones are not noted.
  private static let mostWaitingUses = 2_048

  private let parts: [Lock<Part>]
  /// The numbers of parts that have uses which wait, or are about to have their first.
  private let waiting = AtomicBits()

  /// - Parameter isTimed: whether times tell which of two uses was first. If not, as with a clock
  ///   that stands still, threads share one part.
  init(_ policy: CachePolicy, isTimed: Bool) {
    parts = (0..<(isTimed ? ThreadStripe.count : 1)).map { [waiting] number in
      Lock(Part(policy, number, waiting))
    }
  }

  /// Calls `body` with the calling thread's part.
  @inline(__always)
  private func withPart<R>(_ body: (inout Part) -> R) -> R {
    parts.span[parts.count == 1 ? 0 : ThreadStripe.number].withLock(body)
  }

  var policy: CachePolicy { withPart { $0.policy } }

  func setPolicy(_ policy: CachePolicy) {
    for part in parts { part.withLock { $0.policy = policy } }
  }

  /// ``CachePolicy/maxAge`` in milliseconds.
  var defaultAge: Int64 { withPart { $0.defaultAge } }

  var counts: CacheCounts {
    parts.reduce(into: CacheCounts()) { sum, part in sum.add(part.withLock { $0.counts }) }
  }

  func count(_ body: (inout CacheCounts) -> Void) { withPart { body(&$0.counts) } }

  /// Notes that an entry was read.
  /// - Parameter isValid: whether its value was valid, for what counts as a hit.
  /// - Returns: how many uses of the thread wait, when it is time for the order to take them in.
  func noteUse(of sequence: UInt64, at now: Timestamp, isValid: Bool?) -> Int? {
    withPart { part in
      if let isValid { part.countRead(isValid: isValid) }
      return part.note(sequence, at: now)
    }
  }

  /// Notes a hit and a use of an entry.
  /// - Parameter onlyValid: whether a value that is valid no more is left to the caller.
  /// - Returns: whether it was noted, and how many uses wait as above.
  func noteHit(
    _ sequence: UInt64, _ validity: Validity, at now: Timestamp, onlyValid: Bool
  ) -> (isNoted: Bool, waiting: Int?) {
    withPart { part in
      let isValid = validity.isValid(at: now, defaultAge: part.defaultAge)
      guard isValid || !onlyValid else { return (false, nil) }
      part.countRead(isValid: isValid)
      if onlyValid { part.counts.requestsAvoided += 1 }
      return (true, part.note(sequence, at: now))
    }
  }

  var hasUses: Bool { !waiting.isEmpty }

  /// Takes the uses of all threads, the earliest first.
  func takeUses(into uses: inout [(sequence: UInt64, time: Int64)]) {
    let waiting = waiting.take()
    for number in parts.indices where waiting & 1 << UInt64(number) != 0 {
      parts[number].withLock { part in
        uses += part.uses
        part.uses.removeAll(keepingCapacity: true)
      }
    }
    // The times of a thread ascend.
    if waiting.nonzeroBitCount > 1 { uses.sort { $0.time < $1.time } }
  }
}
