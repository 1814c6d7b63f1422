/// The part of the changes that were not synced which a power cut leaves.
///
/// A disk may write what it was not asked to keep in any order and at any time, so everything
/// between ``loseAll`` and ``keepAll`` can happen. A crash test tries several of these at each
/// point; ``sweep(seed:randoms:)`` makes a good list. Whatever is chosen, what was synced stays.
public enum Survival: Sendable, Hashable {
  /// All of it.
  case keepAll
  /// None of it.
  case loseAll
  /// The older half of all un-synced calls survives.
  case keepOldest
  /// The younger half of all un-synced calls survives: written before what came first.
  case keepNewest
  /// Names and lengths, but no bytes: files full of zeros (delayed allocation).
  case keepNames
  /// Bytes within the synced lengths, but no names and no lengths.
  case keepBytes
  /// All names and lengths, and of each sector some of the new bytes.
  case tearAll(seed: UInt64)
  /// All names and lengths, and of each file the new sectors before one of them: a long write that
  /// was cut.
  case cutWrites(seed: UInt64)
  /// Each sector, length and name on its own is kept, lost or torn.
  case random(seed: UInt64)
  /// As ``random(seed:)``, and where a file's new length was kept but a sector was not, bytes of
  /// other files stand there instead of zeros.
  case randomStale(seed: UInt64)

  /// All policies, with several of the random ones.
  /// - Parameters:
  ///   - seed: what the random ones are made from.
  ///   - randoms: how many of ``random(seed:)``.
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
