extension Reader {
  /// When the oldest version since the key was last absent was committed.
  ///
  /// A key that is written and read in turns has a long history, of which each read walks only what
  /// is new since the one before.
  /// - Returns: a hybrid time.
  package func created(_ info: EntryInfo) throws(TidemarkError) -> UInt64 {
    if info.created != 0 { return info.created }
    var time = info.commitTime
    var previous = info.previous
    var steps = 0
    var known: [UInt64: KnownCreations.Known] = [:]
    // Links lead strictly downward, so this ends.
    while previous > 0, let entry = try entryIfKept(at: previous) {
      if entry.head.kind.removes { break }
      steps += 1
      if steps == KnownCreations.fewSteps { known = creations.all }
      let version = known[previous]
      if version?.commitTime == entry.head.commitTime, let version {
        time = version.created
        break
      }
      if entry.head.created != 0 {
        time = entry.head.created
        break
      }
      time = entry.head.commitTime
      previous = entry.head.previous
    }
    if steps >= KnownCreations.fewSteps {
      creations.note(
        info.sequence, KnownCreations.Known(commitTime: info.commitTime, created: time))
    }
    return time
  }
}

/// When the keys of some versions were created that have long histories, by sequence.
final class KnownCreations: Sendable {
  /// A version's time, which tells it from another one that has its sequence after a crash, and its
  /// key's.
  struct Known: Sendable {
    var commitTime: UInt64
    var created: UInt64
  }

  /// Histories of fewer versions are walked without looking here.
  static let fewSteps = 16
  /// Most versions that are remembered.
  static let most = 1_024

  private let versions = Lock<[UInt64: Known]>([:])

  var all: [UInt64: Known] { versions.withLock { $0 } }

  func note(_ sequence: UInt64, _ known: Known) {
    versions.withLock { versions in
      if versions.count >= Self.most { versions = [:] }
      versions[sequence] = known
    }
  }
}
