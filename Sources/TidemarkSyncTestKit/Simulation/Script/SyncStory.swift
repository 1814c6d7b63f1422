internal import TidemarkTestKit

/// Events that follow each other on one key, as chance rarely brings them together.
public enum SyncStory: String, Sendable, Hashable, CaseIterable {
  /// The server is restored while a device waits for the answer to a question about a batch that it
  /// has sent.
  case restoredWhileAsked
  /// A batch arrives after the server was restored, and its answer is lost.
  case arrivedAfterRestore
  /// A batch arrives only once the server was restored and has all of it by another, and somebody
  /// has deleted it since.
  case arrivedLate
  /// A device returns after its lease has expired, with a change that wins now and would have lost
  /// before.
  case returnedWithWinner
  /// A device returns after its lease has expired. The server has dropped the tombstones of keys
  /// that were deleted meanwhile.
  case returnedToDeletes
  /// A device comes back after its lease with a batch that nobody got, on a key that others have
  /// changed: it hears what the key holds before it hears of the conflict.
  case returnedWithBatch
  /// The server drops its history before a device has pulled a delete.
  case deletedUnseen
  /// A device and a copy of it send a batch of the same number.
  case clonedUnderWay
  /// A device is restored from a copy that has never met the server, where nothing is left of what
  /// it had sent. For the beginning of a script.
  case restoredToNothing
}

extension SyncEvent {
  /// A device that is the last one, however many there are: there are eight at most.
  static let lastDevice = 839
}

extension SyncScriptGenerator {
  /// Whom and what a story is about.
  private struct Cast {
    var one: Int
    var other: Int
    var key: String
  }

  /// Events of a story, with devices that hear of each other as it needs.
  mutating func events(of story: SyncStory) -> [SyncEvent] {
    let one = someDevice()
    let other = (one + 1 + generator.int(below: devices - 1)) % devices
    let start = [one, other].flatMap {
      [SyncEvent(.heal, device: $0), SyncEvent(.exchange, device: $0, [8])]
    }
    // Nobody else writes to this key, so that its fate shows.
    number += 1
    let own = Cast(one: one, other: other, key: "s\(number)")
    switch story {
    case .restoredWhileAsked, .arrivedAfterRestore, .returnedWithWinner:
      return start + onSharedKey(story, Cast(one: one, other: other, key: key()))
    case .returnedToDeletes, .returnedWithBatch, .deletedUnseen:
      return start + aboutHistory(story, own)
    case .arrivedLate, .clonedUnderWay: return start + aboutBatches(story, own)
    case .restoredToNothing: return beginning(own)
    }
  }

  private func exchange(_ device: Int, _ calls: UInt64) -> SyncEvent {
    SyncEvent(.exchange, device: device, [calls])
  }

  private mutating func put(_ key: String, by device: Int) -> SyncEvent {
    SyncEvent(.write, device: device, writes: [write(.put, key)])
  }

  private func delete(_ key: String, by device: Int) -> SyncEvent {
    SyncEvent(.write, device: device, writes: [SyncWrite(.delete, key)])
  }

  /// Longer than a lease.
  private var absence: SyncEvent { SyncEvent(.advance, [31 * 86_400]) }

  private mutating func onSharedKey(_ story: SyncStory, _ cast: Cast) -> [SyncEvent] {
    let (one, other) = (cast.one, cast.other)
    let mine = put(cast.key, by: one)
    let theirs = put(cast.key, by: other)
    switch story {
    case .restoredWhileAsked:
      return [
        exchange(one, 8), SyncEvent(.backUp), mine, theirs, exchange(one, 1),
        SyncEvent(.restore, [SyncEvent.last]), exchange(other, 8), exchange(one, 2),
      ]
    case .arrivedAfterRestore:
      return [
        SyncEvent(.backUp), theirs, exchange(other, 2), exchange(one, 4), mine,
        SyncEvent(.call, device: one), SyncEvent(.restore, [SyncEvent.last]),
        SyncEvent(.deliver, [SyncEvent.last]), SyncEvent(.giveUp, device: one), exchange(one, 8),
      ]
    default:
      return [
        SyncEvent(.policy, [0, 1]), SyncEvent(.resolver, device: one, [1]), exchange(one, 8),
        absence, theirs, exchange(other, 8), SyncEvent(.advance, [1]), mine, exchange(one, 8),
      ]
    }
  }

  /// Puts a key, and lets both have it.
  private mutating func known(_ cast: Cast) -> [SyncEvent] {
    [put(cast.key, by: cast.one), exchange(cast.one, 4), exchange(cast.other, 4)]
  }

  /// Deletes a key. The next hello says that it has read as far as it has written.
  private func deleted(_ cast: Cast) -> [SyncEvent] {
    [
      delete(cast.key, by: cast.other), exchange(cast.other, 4),
      SyncEvent(.giveUp, device: cast.other), exchange(cast.other, 4),
    ]
  }

  private mutating func aboutHistory(_ story: SyncStory, _ cast: Cast) -> [SyncEvent] {
    let (one, other, key) = (cast.one, cast.other, cast.key)
    switch story {
    case .returnedToDeletes:
      return known(cast) + [absence, exchange(other, 16)] + deleted(cast)
        + [SyncEvent(.dropHistory), exchange(one, 16)]
    case .deletedUnseen:
      return known(cast) + deleted(cast) + [SyncEvent(.dropHistory), exchange(one, 8)]
    default:
      return [SyncEvent(.policy, [0, 0])] + known(cast) + [
        put(key, by: other), exchange(other, 4), put(key, by: one),
        SyncEvent(.call, device: one), SyncEvent(.drop, [SyncEvent.last]),
        SyncEvent(.giveUp, device: one), absence, exchange(one, 16),
      ]
    }
  }

  private mutating func aboutBatches(_ story: SyncStory, _ cast: Cast) -> [SyncEvent] {
    let (one, other, key) = (cast.one, cast.other, cast.key)
    if story == .arrivedLate {
      return [
        SyncEvent(.backUp), put(key + "'", by: one), exchange(one, 4), put(key, by: one),
        SyncEvent(.call, device: one), SyncEvent(.giveUp, device: one),
        SyncEvent(.restore, [SyncEvent.last]), exchange(one, 16), exchange(other, 16),
        delete(key, by: other), exchange(other, 4), SyncEvent(.deliver, [SyncEvent.last]),
        exchange(one, 4), exchange(other, 4),
      ]
    }
    return [
      SyncEvent(.clone, device: one), put(key, by: one), SyncEvent(.call, device: one),
      put(key + "'", by: SyncEvent.lastDevice), exchange(SyncEvent.lastDevice, 4),
      SyncEvent(.deliver, [SyncEvent.last]), SyncEvent(.deliver, [SyncEvent.last]),
      exchange(one, 8),
    ]
  }

  private mutating func beginning(_ cast: Cast) -> [SyncEvent] {
    let one = cast.one
    return [SyncEvent(.backUp, device: one)] + known(cast) + deleted(cast) + [
      SyncEvent(.giveUp, device: one), exchange(one, 4), SyncEvent(.giveUp, device: one),
      exchange(one, 4), SyncEvent(.dropHistory), SyncEvent(.restore, device: one, [0]),
      put(cast.key + "'", by: one), exchange(one, 8),
    ]
  }
}
