internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The attachments that changes wait for on their way to the peer. Nothing of it is kept: the peer
/// says again how much it has.
struct OutgoingAttachments {
  /// An attachment whose content is to be sent.
  struct Row {
    var id: AttachmentID
    /// The key and the sequence of the first change that names it.
    var key: [UInt8]
    var sequence: UInt64
    var priority: Int64
    /// Bytes that the peer has; nil when it was not asked yet.
    var offset: Int?
    /// The changes that wait for it.
    var sequences = SequenceSet()
  }

  /// So many are looked after at a time; the others wait until these have gone.
  private static let mostRows = 1_024

  var rows: [AttachmentID: Row] = [:]
  /// Contents that are whole at the peer, until the changes that name them are there, too: it is
  /// asked again for the next one.
  var there: Set<AttachmentID> = []
  /// Contents that cannot be there: the changes that name them go to the user.
  private(set) var refused: [AttachmentID: Rejection] = [:]
  /// Changes whose attachments wait until there is room for them here.
  private var later = SequenceSet()
  /// All changes that wait for content.
  private(set) var sequences = SequenceSet()
  /// Whether changes have ceased to wait since a batch was last looked for in vain.
  var hasReleased = false
  /// A part that was sent, or a question for what is there.
  var asked: (id: AttachmentID, offset: Int, count: Int)?
  private var reader: AttachmentFileReader?

  /// Whether nothing is to be sent, nor was since changes have ceased to wait for it.
  var isAtRest: Bool { rows.isEmpty && !hasReleased }

  /// The peer may have less than it had.
  mutating func forgetPeer() {
    there = []
    refused = [:]
    asked = nil
    reader = nil
    for id in rows.keys { rows[id]?.offset = nil }
  }

  mutating func add(_ change: LoggedChange, _ id: AttachmentID) {
    sequences.insert(change.sequence)
    guard rows[id] != nil || rows.count < Self.mostRows else {
      later.insert(change.sequence)
      return
    }
    let priority = change.attributes.priority
    var row =
      rows[id] ?? Row(id: id, key: change.key, sequence: change.sequence, priority: priority)
    row.sequences.insert(change.sequence)
    row.priority = max(row.priority, priority)
    rows[id] = row
  }

  /// The next content to send: the most urgent one, of these the first in the log.
  var next: Row? {
    rows.values.max { ($0.priority, $1.sequence) < ($1.priority, $0.sequence) }
  }

  /// Changes that name it go to the user.
  mutating func refuse(_ id: AttachmentID, _ rejection: Rejection) {
    refused[id] = rejection
    release(id)
  }

  /// Nobody waits for its content any more.
  mutating func release(_ id: AttachmentID) {
    if reader?.header.id == id { reader = nil }
    guard let row = rows.removeValue(forKey: id) else { return }
    sequences = sequences.subtracting(row.sequences)
    hasReleased = true
    guard rows.isEmpty, !later.isEmpty else { return }
    sequences = sequences.subtracting(later)
    later = SequenceSet()
  }

  /// The content of an attachment; nil when it is not here.
  mutating func content(
    of id: AttachmentID, in log: ReplicationLog
  ) throws(TidemarkError) -> AttachmentFileReader? {
    if let reader, reader.header.id == id { return reader }
    reader = try log.openContent(id)
    return reader
  }
}
