/// Decides which unsynced changes a power cut leaves on a ``SimulatedFileSystem``.
///
/// A disk may write unsynced changes in any order and at any time, so every result between
/// ``loseAll`` and ``keepAll`` can happen. A crash test tries several of them at each point;
/// ``sweep(seed:randoms:)`` makes a good list. Synced changes always survive.
public enum Survival: Sendable, Hashable {
  /// All unsynced changes survive the power cut.
  case keepAll
  /// No unsynced change survives the power cut.
  case loseAll
  /// The older half of all unsynced calls survives.
  case keepOldest
  /// The younger half of all unsynced calls survives, as on a disk that reorders writes.
  case keepNewest
  /// Unsynced names and lengths survive, but no bytes: files are full of zeros (delayed
  /// allocation).
  case keepNames
  /// Unsynced bytes within the synced lengths survive, but no names and no lengths.
  case keepBytes
  /// All names and lengths survive, and some of the new bytes of each sector.
  case tearAll(seed: UInt64)
  /// All names and lengths survive, and in each file the new sectors before a random one, as in a
  /// long write that was interrupted.
  case cutWrites(seed: UInt64)
  /// Each sector, length and name is kept, lost or torn at random.
  case random(seed: UInt64)
  /// As ``random(seed:)``, but a lost sector within a kept new length shows old bytes of other
  /// files instead of zeros.
  case randomStale(seed: UInt64)

  /// Returns a list of all policies, with several random ones, for a crash test to try.
  /// - Parameters:
  ///   - seed: the seed of the random policies.
  ///   - randoms: how many times ``random(seed:)`` is in the list.
  public static func sweep(seed: UInt64, randoms: Int = 3) -> [Survival] {
    var generator = SeededGenerator(seed: seed)
    var result: [Survival] = [
      .loseAll, .keepAll, .keepOldest, .keepNewest, .keepNames, .keepBytes,
      .tearAll(seed: generator.next()), .randomStale(seed: generator.next()),
    ]
    for _ in 0..<max(0, randoms) { result.append(.random(seed: generator.next())) }
    result.append(.cutWrites(seed: generator.next()))
    return result
  }
}
