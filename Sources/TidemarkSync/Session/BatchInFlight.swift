internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The batch under way, and what is of no use once it is not any more.
struct BatchInFlight {
  let batch: FormedBatch
  let sequences: SequenceSet
  /// The content as it is sent; nil when the batch was formed before the program was started, or
  /// before the peer was restored.
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
