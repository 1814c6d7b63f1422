internal import Tidemark
internal import TidemarkEngine

extension SyncSession {
  /// So many keys are decided in one commit, which other writers of the store wait for.
  private static let decidedPerCommit = 256

  /// An entry that waits for its key's remote state, and that, which is there.
  private typealias Met = (entry: WaitingEntries.Entry, state: RemoteState)

  /// Runs the resolver on keys whose remote state is there.
  func resolveWaiting() throws {
    var together: [Met] = []
    var alone: [Met] = []
    var bytes = 0
    for entry in progress.waiting.conflicts {
      guard progress.waiting[entry.sequence] == entry.reason, let position = entry.reason.position,
        let found = try beside(ofKey: entry.key),
        found.state.position.offset >= position.offset
      else { continue }
      together.append((entry, found.state))
      bytes += found.state.content.value.count
      bytes += try log.newestChange(ofKey: entry.key)?.valueLength ?? 0
      if together.count == Self.decidedPerCommit || bytes >= bytesTogether {
        alone += try resolve(together)
        (together, bytes) = ([], 0)
      }
    }
    alone += try resolve(together)
    for met in alone { _ = try resolve([met]) }
  }

  /// Runs the resolver on keys, all in one commit.
  /// - Returns: those that have to be decided alone, since others go with them.
  private func resolve(_ keys: [Met]) throws -> [Met] {
    guard !keys.isEmpty else { return [] }
    var left: [Met] = []
    try commit(arriving: Set(keys.map(\.entry.key))) { operations in
      left = []
      for (entry, state) in keys {
        let (key, sequence, reason) = (entry.key, entry.sequence, entry.reason)
        guard progress.waiting[sequence] == reason else { continue }
        let newest = try log.newestChange(ofKey: key)
        if keys.count > 1, let newest, try !pendingMembers(upTo: newest).isEmpty {
          left.append((entry, state))
          continue
        }
        if PlantedSyncBug.isOn(.conflictForgotten) { progress.waiting.remove(sequence) }
        // The change is pending until the resolver has decided. A policy decides on this change
        // only: one made since is judged by itself.
        if !reason.isLost || newest?.sequence == sequence
          || PlantedSyncBug.isOn(.lossDropsLaterEdit)
        {
          try meet(key, state, isLost: reason.isLost, isAlone: true, into: &operations)
        }
        if progress.waiting[sequence]?.position != nil { progress.waiting.remove(sequence) }
      }
    }
    return left
  }
}
