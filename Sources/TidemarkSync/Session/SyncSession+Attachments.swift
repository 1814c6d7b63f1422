internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The upload of attachments' content: in parts, when nothing else can be sent, and always before
/// the batch with the change that refers to it.
extension SyncSession {
  /// The most bytes of a part of an upload; see ``SyncLimits``.
  private static let partBytes = 768 << 10

  func nextPush() throws -> WireMessage? {
    while true {
      if try startNextBatch(), let request = try nextRequest() { return .pushRequest(request) }
      if let part = try nextPart() { return .attachRequest(part) }
      guard outgoing.hasReleased else { return nil }
      outgoing.hasReleased = false
    }
  }

  func nextPart() throws(TidemarkError) -> AttachRequest? {
    guard attachmentBytes != nil, !gate.isNarrow else { return nil }
    while let row = outgoing.next {
      guard try isWanted(row) else {
        outgoing.release(row.id)
        continue
      }
      if let part = try part(of: row) { return part }
    }
    return nil
  }

  /// The next part of content that the batch in flight refers to and the peer lacks: the peer was
  /// restored or restarted before the batch arrived.
  func nextPartOfBatch() throws(TidemarkError) -> AttachRequest? {
    guard let inFlight, !inFlight.isGivenUp, !inFlight.lacksContent else { return nil }
    let found =
      if let known = inFlight.attachments { known } else {
        try attachments(of: inFlight.batch.items.map(\.sequence))
      }
    inFlight.attachments = found
    for (change, id) in found {
      while !outgoing.there.contains(id) {
        guard outgoing.refused[id] == nil else {
          inFlight.lacksContent = true
          return nil
        }
        outgoing.add(change, id)
        // Too many uploads are open: one of them goes on, and this one starts when they end.
        guard let row = outgoing.rows[id] else { return try nextPart() }
        if let part = try part(of: row) { return part }
      }
    }
    return nil
  }

  /// The puts among some changes that refer to attachments.
  private func attachments(
    of sequences: [UInt64]
  ) throws(TidemarkError) -> [(LoggedChange, AttachmentID)] {
    var found: [(LoggedChange, AttachmentID)] = []
    for sequence in sequences {
      guard let change = try log.change(at: sequence), change.kind == .put,
        let id = change.attributes.attachment
      else { continue }
      found.append((change, id))
    }
    return found
  }

  /// Whether a change that refers to the content is still to be sent.
  private func isWanted(_ row: OutgoingAttachments.Row) throws(TidemarkError) -> Bool {
    for sequence in row.sequences.sequences {
      guard let change = try log.change(at: sequence), isPending(change),
        outbox.waiting[sequence] == nil
      else { continue }
      // A later change of its key may be sent instead.
      if change.attributes.atomicGroup != 0 { return true }
      if try BatchBuilder(self).newest(inPlaceOf: change)?.sequence == sequence { return true }
    }
    return false
  }

  /// The next part of a content; an empty one asks how many bytes the peer has.
  /// - Returns: nil when it cannot be sent: the changes that refer to it are parked.
  private func part(of row: OutgoingAttachments.Row) throws(TidemarkError) -> AttachRequest? {
    let length = Int(clamping: row.id.length)
    if length > attachmentBytes ?? 0 {
      outgoing.refuse(row.id, .tooLarge(AttachmentReference(row.id), most: attachmentBytes ?? 0))
      return nil
    }
    var request = AttachRequest(
      replica: replica, key: row.key, attachment: AttachmentReference(row.id),
      offset: row.offset ?? 0, bytes: [])
    do throws(TidemarkError) {
      if let offset = row.offset {
        guard let reader = try outgoing.content(of: row.id, in: log) else {
          outgoing.refuse(row.id, Self.contentMissing)
          return nil
        }
        let most = max(AttachRequest.partBytes, min(Self.partBytes, batchBytes))
        let end = min(length, offset + most / AttachRequest.partBytes * AttachRequest.partBytes)
        while offset + request.bytes.count < end {
          let place = offset + request.bytes.count
          request.bytes += try reader.read(at: place, count: end - place)
        }
      }
    } catch {
      guard error.code == .damaged else { throw error }
      outgoing.refuse(
        row.id, SyncRejection(code: "attachmentDamaged", message: error.message).bounded)
      return nil
    }
    outgoing.asked = (row.id, request.offset, request.bytes.count)
    return request
  }

  static let contentMissing = SyncRejection(
    code: "attachmentMissing",
    message: "neither this store nor the peer has the content of the attachment; attach it again "
      + "and retry, or put the entry without it")

  /// Parks entries for a peer that accepts no attachments: sent without, they would differ.
  static let noAttachments = SyncRejection(
    code: "attachment", message: "the peer takes no attachments; put the entry without one")

  func handle(_ answer: AttachAnswer) throws {
    guard let asked = outgoing.asked else { return }
    outgoing.asked = nil
    let length = Int(clamping: asked.id.length)
    if let rejection = answer.rejection {
      return outgoing.refuse(asked.id, rejection.bounded)
    }
    guard answer.received <= length,
      answer.received == length || answer.received % AttachRequest.partBytes == 0
    else { throw PeerError(.malformed, "the peer reports more bytes of an attachment than it has") }
    if asked.count > 0 {
      totals.attachmentBytesSent += min(max(0, answer.received - asked.offset), asked.count)
    }
    guard answer.received == length else {
      outgoing.rows[asked.id]?.offset = answer.received
      return
    }
    outgoing.there.insert(asked.id)
    outgoing.release(asked.id)
    // A fault that only tests switch on.
    if PlantedSyncBug.isOn(.releasedEarly) { try log.engine.releaseAttachment(asked.id) }
  }

  // MARK: After the verdict

  /// Deletes local content that the peer has accepted with its change, if the policy is `release`
  /// and no other peer still needs it from this store.
  func releaseContent(of batch: OutgoingBatch, _ verdicts: [PushVerdict]) throws(TidemarkError) {
    let taken = zip(batch.items, verdicts).filter(\.1.isTaken).map(\.0.sequence)
    for (change, id) in try attachments(of: taken) {
      outgoing.there.remove(id)
      guard attachmentPolicy.afterUpload == .release, outgoing.rows[id] == nil else { continue }
      let others = try log.engine.livePins(butOf: records.pinKey)
      // An unreadable pin counts as pending.
      let isKept = others.contains { $0?.isPending(change.sequence) ?? true }
      if !isKept { try log.engine.releaseAttachment(id) }
    }
  }

  /// Sends changes that were parked while the peer accepted no attachments, if it does now.
  func resendWithAttachments() throws {
    let waiting = outbox.waiting.filter { $0.value == .parked(Self.noAttachments) }
    guard attachmentBytes != nil, !waiting.isEmpty else { return }
    try commit { tx in
      for (sequence, _) in waiting {
        tx.outbox.resend(sequence)
      }
    }
  }
}

extension BatchBuilder {
  /// Whether a change waits until the peer has its attachment's content, or is parked since it
  /// never will.
  mutating func waitsForContent(_ change: LoggedChange) -> Bool {
    guard change.kind == .put, let id = change.attributes.attachment else { return false }
    let hasNone = session.attachmentBytes == nil
    if let rejection = hasNone ? SyncSession.noAttachments : session.outgoing.refused[id] {
      outbox.wait(change, for: .parked(rejection))
      return true
    }
    guard !session.outgoing.there.contains(id) else { return false }
    session.outgoing.add(change, id)
    block(change.sequence)
    return true
  }
}

/// The uploads that changes wait for, in memory only: after a restart the peer says how many bytes
/// of each it has.
struct OutgoingAttachments {
  /// An upload of one content.
  struct Row {
    var id: AttachmentID
    /// The key and the sequence of the first change that refers to it.
    var key: [UInt8]
    var sequence: UInt64
    var priority: Int64
    /// The bytes that the peer has; nil before it was asked.
    var offset: Int?
    /// The changes that wait for it.
    var sequences = SequenceSet()
  }

  /// The most uploads in the table; further ones are added when it is empty.
  private static let mostRows = 1_024

  var rows: [AttachmentID: Row] = [:]
  /// Contents that are complete at the peer, until a change that refers to them has its verdict.
  /// For the next change the peer is asked again.
  var there: Set<AttachmentID> = []
  /// Contents that the peer can never have: the changes that refer to them are parked.
  private(set) var refused: [AttachmentID: SyncRejection] = [:]
  /// Changes whose uploads wait for room in the table.
  private var later = SequenceSet()
  /// All changes that wait for an upload.
  var sequences: SequenceSet { rows.values.reduce(into: later) { $0.formUnion($1.sequences) } }
  /// Whether changes have stopped waiting since no batch could be formed.
  var hasReleased = false
  /// The request in flight: a part, or with count 0 the question for the peer's offset.
  var asked: (id: AttachmentID, offset: Int, count: Int)?
  private var reader: AttachmentFileReader?

  /// Whether there is no upload, and no change that has stopped waiting for one.
  var isAtRest: Bool { rows.isEmpty && !hasReleased }

  /// Drops what is known of the peer's bytes: it may have been restored.
  mutating func forgetPeer() {
    there = []
    refused = [:]
    asked = nil
    reader = nil
    for id in rows.keys { rows[id]?.offset = nil }
  }

  mutating func add(_ change: LoggedChange, _ id: AttachmentID) {
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

  /// The next upload: the one of the highest priority, of these the first in the log.
  var next: Row? {
    rows.values.max { ($0.priority, $1.sequence) < ($1.priority, $0.sequence) }
  }

  /// Ends an upload that cannot succeed: the changes that refer to it are parked.
  mutating func refuse(_ id: AttachmentID, _ rejection: SyncRejection) {
    refused[id] = rejection
    release(id)
  }

  /// Ends an upload; the changes that waited for it can be sent.
  mutating func release(_ id: AttachmentID) {
    if reader?.header.id == id { reader = nil }
    guard rows.removeValue(forKey: id) != nil else { return }
    hasReleased = true
    if rows.isEmpty { later = SequenceSet() }
  }

  /// The content of an attachment; nil if this store does not have it.
  mutating func content(
    of id: AttachmentID, in log: ReplicationLog
  ) throws(TidemarkError) -> AttachmentFileReader? {
    if let reader, reader.header.id == id { return reader }
    reader = try log.engine.openAttachment(id)
    return reader
  }
}
