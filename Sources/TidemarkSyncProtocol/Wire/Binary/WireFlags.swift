/// The bits at the head of an entry: `WireProtocol.md`, sections "Changes" and "Feed entries".
enum WireFlags {
  /// Flag of a change: it deletes.
  static let isDelete = 1
  /// Flags of a change: two bits, how its base is coded.
  static let baseShift = 1
  static let baseAbsent = 0
  static let baseInEpoch = 1
  static let baseOperation = 2
  static let baseInOtherEpoch = 3
  /// Flags of a feed entry: two bits, one less than its kind.
  static let kindMask = 3
  /// Flag of a feed entry: its position lies in another epoch than the one before.
  static let otherEpoch = 1 << 2

  static let labels = 1 << 3
  static let hash = 1 << 4
  static let maxAge = 1 << 5
  static let time = 1 << 6
  /// Flag of a change: it is a member of an atomic group.
  static let atomicGroup = 1 << 7
  /// Flag of a feed entry: another replica wrote it than the one before.
  static let otherReplica = 1 << 7
  /// Optional fields follow.
  static let optionalFields = 1 << 8
  /// Flag of a put: its value travels apart, and its name follows.
  static let blob = 1 << 9
  static let all = (1 << 10) - 1

  /// Flag of the verdict codes, in the low bits of a run's tag: the position's epoch follows.
  static let verdictOtherEpoch = 1 << 3
  static let verdictShift = 4

  /// A flag of hellos.
  static let hasResynced: UInt8 = 1
  /// A flag of hellos.
  static let readsNothing: UInt8 = 2
  /// A flag of pulls.
  static let takesBlobs: UInt8 = 2
  /// A flag of pulls.
  static let everyVersion: UInt8 = 4
  /// A flag of pulls.
  static let ownOnly: UInt8 = 8
  /// Flag of a question for values.
  static let valuesTakeBlobs: UInt8 = 1
  /// Flag of a hello's answer.
  static let hasLease: UInt8 = 1
  static let isLeaseExpired: UInt8 = 2
  /// Optional field of pushes and of answers that tell of entries: how far the authorization
  /// reaches.
  static let reachField: UInt64 = 1
  /// Optional field of pushes: the id of the batch before.
  static let previousBatchField: UInt64 = 2
  /// Optional field of a hello's answer: most bytes of an attachment's content.
  static let attachmentBytesField: UInt64 = 2
  /// Optional field of a hello's answer: the policies for conflicts.
  static let policiesField: UInt64 = 3
  /// Optional field of an entry: the attachment that it names.
  static let attachmentField: UInt64 = 1
  /// Optional field of a feed entry: when the feed took it.
  static let receivedField: UInt64 = 2
  /// Flag of an answer to a part of an attachment's content.
  static let isRefused: UInt8 = 1
  /// Flag of an answer with a part of an attachment's content.
  static let isContentThere: UInt8 = 1
  /// Flag of an error.
  static let hasRetryAfter: UInt8 = 1
}

extension Verdict {
  /// Its number on the wire: `WireProtocol.md`, section "Mark".
  var wireCode: Int {
    switch self {
    case .applied: 0
    case .duplicate: 1
    case .conflict: 2
    case .lost: 3
    case .rejected: 4
    case .aborted: 5
    }
  }

  /// The position in it.
  package var position: Position? {
    switch self {
    case .applied(let position), .duplicate(let position), .conflict(let position),
      .lost(let position):
      position
    case .rejected, .aborted: nil
    }
  }

  /// The same of another position, if it is of one.
  package func at(_ position: Position) -> Verdict {
    Verdict(wireCode: wireCode, at: position) ?? self
  }

  /// A verdict of a position.
  init?(wireCode: Int, at position: Position) {
    switch wireCode {
    case 0: self = .applied(position)
    case 1: self = .duplicate(position)
    case 2: self = .conflict(position)
    case 3: self = .lost(position)
    default: return nil
    }
  }

  /// Whether it is in one run with the one before: the same at the next offset.
  func continues(_ previous: Verdict) -> Bool {
    guard wireCode == previous.wireCode else { return false }
    if case .rejected(let a) = self, case .rejected(let b) = previous {
      // Strings compare by characters, but travel as bytes.
      return a.code.utf8.elementsEqual(b.code.utf8) && a.message.utf8.elementsEqual(b.message.utf8)
    }
    guard let position, let before = previous.position else { return self == previous }
    return before.offset < .max && position.epoch == before.epoch
      && position.offset == before.offset + 1
  }
}

extension PeerError.Kind {
  /// Their numbers on the wire are their places here, from 1: `WireProtocol.md`, section "Error".
  static let wireOrder: [Self] = [
    .unavailable, .busy, .unauthorized, .forbidden, .cursorGone, .leaseExpired, .malformed,
    .failed,
  ]

  var wireCode: UInt8 { UInt8((Self.wireOrder.firstIndex(of: self) ?? 0) + 1) }
}
