internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The batch under way, and what is of no use once it is not any more.
struct BatchInFlight {
  let batch: FormedBatch
  let sequences: SequenceSet
  /// The content as it is sent; nil when the batch was formed before the program was started.
  var content: (changes: [PushedChange], knownHead: Position)?
  /// The keys; nil when nobody has looked.
  var keys: KeyTable?
  /// The changes that name attachments; nil when nobody has looked.
  var attachments: [(LoggedChange, AttachmentID)]?
  /// Whether content that the changes name is neither here nor at the peer.
  var lacksContent = false
  /// How often the peer has failed on it, and how it did last.
  var failures = 0
  var lastFailure: PeerError?

  /// So many failures on one batch are its own fault.
  static let mostFailures = 8

  var isGivenUp: Bool { failures >= Self.mostFailures }

  init(_ batch: FormedBatch) {
    self.batch = batch
    sequences = batch.sequences
  }
}

/// The keys of a batch, each with the sequence of its last change in it.
///
/// It looks them up by a hash that is much faster than that of an array, and like that seeded, so
/// that whoever chooses the keys cannot make them collide.
struct KeyTable {
  private struct HashedKey: Hashable {
    let keyHash: UInt64
    let key: [UInt8]

    func hash(into hasher: inout Hasher) { hasher.combine(keyHash) }
  }

  private let seed: UInt64
  private var rows: [HashedKey: (sequence: UInt64, isSent: Bool)] = [:]

  /// - Parameter seed: a number that those who choose the keys do not know.
  init(seed: UInt64) { self.seed = seed }

  private func hashed(_ key: [UInt8]) -> HashedKey {
    HashedKey(keyHash: KeyHash.hash(key.rawSpan, seed: seed), key: key)
  }

  /// The sequence of a key's last change.
  subscript(key: [UInt8]) -> UInt64? { rows[hashed(key)]?.sequence }

  /// Whether a change of the key is sent.
  func sends(_ key: [UInt8]) -> Bool { rows[hashed(key)]?.isSent ?? false }

  /// Takes note of a key's change.
  /// - Parameter isSent: whether the change goes; it stays so for the key.
  mutating func note(_ key: [UInt8], _ sequence: UInt64, isSent: Bool) {
    let key = hashed(key)
    let former = rows.updateValue((sequence, isSent), forKey: key)
    if !isSent, former?.isSent ?? false { rows[key] = (sequence, true) }
  }

  mutating func removeAll() { rows = [:] }
}
