internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Content on its way to the peer: in parts, between other calls and after them, and before the
/// batch that has the change that names it.
extension SyncSession {
  /// Most bytes of a part that is sent; see ``SyncLimits``.
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

  /// The next part of what the batch under way names and the peer lacks, since it was restored, or
  /// ended before the batch had come.
  func nextPartOfBatch() throws(TidemarkError) -> AttachRequest? {
    guard let inFlight, !inFlight.isGivenUp, !inFlight.lacksContent else { return nil }
    for (change, id) in try attachments(of: inFlight) {
      while !outgoing.there.contains(id) {
        guard outgoing.refused[id] == nil else {
          inFlight.lacksContent = true
          return nil
        }
        outgoing.add(change, id)
        // There may be too many on their way; they have gone before the next try.
        guard let row = outgoing.rows[id] else { return try nextPart() }
        if let part = try part(of: row) { return part }
      }
    }
    return nil
  }

  private func attachments(
    of inFlight: BatchInFlight
  ) throws(TidemarkError) -> [(LoggedChange, AttachmentID)] {
    if let known = inFlight.attachments { return known }
    var found: [(LoggedChange, AttachmentID)] = []
    for item in inFlight.batch.items {
      guard let change = try log.change(at: item.sequence), change.kind == .put,
        let id = change.attributes.attachment
      else { continue }
      found.append((change, id))
    }
    inFlight.attachments = found
    return found
  }

  /// Whether a change that names it is still to be sent.
  private func isWanted(_ row: OutgoingAttachments.Row) throws(TidemarkError) -> Bool {
    for sequence in row.sequences.sequences {
      guard let change = try log.change(at: sequence), isPending(change),
        outbox.waiting[sequence] == nil
      else { continue }
      // A later change of its key may go in its place.
      if change.attributes.atomicGroup != 0 { return true }
      if try BatchBuilder(self).newest(inPlaceOf: change)?.sequence == sequence { return true }
    }
    return false
  }

  /// The next part of a content, or the question for what the peer has of it.
  /// - Returns: nil when it cannot be sent: its changes go to the user then.
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
      outgoing.refuse(row.id, Rejection(code: "attachmentDamaged", message: error.message).bounded)
      return nil
    }
    outgoing.asked = (row.id, request.offset, request.bytes.count)
    return request
  }

  static let contentMissing = Rejection(
    code: "attachmentMissing",
    message: "neither this store nor the peer has the content of the attachment; attach it again "
      + "and retry, or put the entry without it")

  /// For a peer that carries none: the entry without its content would be another one.
  static let noAttachments = Rejection(
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
    else { throw PeerError(.malformed, "the peer has more of an attachment than there is") }
    if asked.count > 0 {
      totals.attachmentBytesSent += min(max(0, answer.received - asked.offset), asked.count)
    }
    guard answer.received == length else {
      outgoing.rows[asked.id]?.offset = answer.received
      return
    }
    outgoing.there.insert(asked.id)
    outgoing.release(asked.id)
    if PlantedSyncBug.isOn(.releasedEarly) { try log.releaseContent(asked.id) }
  }

  // MARK: After the verdict

  /// Lets go of content that the peer has acknowledged with the changes that name it, where that is
  /// wanted, and no other peer is to get it from here.
  func releaseContent(of batch: OutgoingBatch, _ verdicts: [Verdict]) throws(TidemarkError) {
    for (item, verdict) in zip(batch.items, verdicts) where verdict.isTaken {
      guard let change = try log.change(at: item.sequence), change.kind == .put,
        let id = change.attributes.attachment
      else { continue }
      outgoing.there.remove(id)
      guard attachmentPolicy.afterUpload == .release, outgoing.rows[id] == nil else { continue }
      let others = try log.pins(besides: records.pinKey)
      // One that cannot be read keeps everything.
      let isKept = others.contains { $0?.isPending(item.sequence) ?? true }
      if !isKept { try log.releaseContent(id) }
    }
  }

  /// Changes that waited for a peer that carries attachments are to be sent.
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
  /// Whether a change waits for the content of its attachment to be at the peer, or goes to the
  /// user since it cannot be there.
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
