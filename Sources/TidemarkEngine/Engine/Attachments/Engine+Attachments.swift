/// Attachments, as far as it takes the log to tell which of them are in use. A *sweep* removes the
/// files that no entry names; the state of files, holds and sweeps is in ``AttachmentFiles``.
extension Engine {
  /// Begins a new attachment. Sweeps first where caches have brought much since the last sweep: the
  /// next one in the background may come too late.
  package func newAttachment(
    makingRoom makeRoom: @escaping @Sendable (Int) -> Bool = { _ in false }
  ) throws(TidemarkError) -> AttachmentFileWriter {
    try writer.checkWritable()
    // An error of the sweep is not the writer's: a later sweep meets it again.
    if !PlantedBug.isOn(.cacheSweepForgotten), attachments.isCacheSweepDue {
      _ = try? sweepAttachments()
    }
    return try attachments.create(makingRoom: makeRoom)
  }

  /// The bytes that the last sweep has kept, for the next opening.
  private var keptHint: HintFile { HintFile(writer, name: "attachments") }

  private func noteCached(_ ids: [AttachmentID]) throws(TidemarkError) {
    let bytes = ids.reduce(0) { $0 + AttachmentHeader(id: $1, number: 0).fileBytes }
    try attachments.noteCached(bytes) {
      keptHint.read().flatMap { try? $0.rawSpan.u64(at: 0) }.flatMap { Int(exactly: $0) }
    }
  }

  /// Opens an attachment.
  /// - Returns: nil when its content is not here.
  package func openAttachment(_ id: AttachmentID) throws(TidemarkError) -> AttachmentFileReader? {
    try reader.checkReadable()
    return try attachments.open(id)
  }

  /// Stages a batch with its attachments on hold, so that no sweep removes them meanwhile.
  /// - Throws: `invalidArgument` where one is not here, unless the batch may lack attachments.
  func stageHolding(
    _ batch: OperationBatch, _ stage: () throws(TidemarkError) -> CommitResult
  ) throws(TidemarkError) -> CommitResult {
    var held: [AttachmentID] = []
    // The last entry that may name them: sweeps that have not seen it keep the files.
    var through: UInt64 = 0
    defer { for id in held { attachments.release(id, through: through) } }
    for id in batch.attachments {
      let isThere = try attachments.hold(id)
      held.append(id)
      guard isThere || batch.mayLackAttachments else {
        throw TidemarkError(
          .invalidArgument,
          "an attachment that the batch names is not in this store; write it first")
      }
    }
    do throws(TidemarkError) {
      let result = try stage()
      through = result.lastSeen
      // The batch is staged, whatever becomes of this count, which only tells when to sweep.
      if batch.hasCached { try? noteCached(batch.attachments) }
      return result
    } catch {
      // The entries may be in the log, at unknown sequences: no sweep of this opening removes them.
      if error.code == .unknownOutcome { through = .max }
      throw error
    }
  }

  /// Replaces an attachment's content by a stub: for content that a peer has.
  package func releaseAttachment(_ id: AttachmentID) throws(TidemarkError) {
    try writer.checkWritable()
    try attachments.releaseContent(of: id)
  }

  /// Removes the attachments that no entry names any more.
  @discardableResult
  package func sweepAttachments() throws(TidemarkError) -> AttachmentFiles.SweepReport {
    try writer.checkWritable()
    try dropOldParts()
    let before = attachments.keptBytes
    let report = try attachments.sweep { () throws(TidemarkError) in try attachmentsInUse() }
    // A store that has never had attachments needs no hint.
    if let kept = attachments.keptBytes, kept != before, kept > 0 || keptHint.read() != nil {
      var writer = ByteWriter(capacity: 8)
      writer.u64(UInt64(kept))
      // A lost hint costs the next opening one needless sweep.
      try? keptHint.write(writer.bytes)
    }
    return report
  }

  /// Sweeps if so much has changed that it pays. A store that takes no writes is passed over.
  package func sweepAttachmentsIfDue() throws(TidemarkError) {
    guard attachments.isSweepDue else { return }
    do throws(TidemarkError) { try sweepAttachments() } catch {
      guard [.closed, .suspended, .readOnly, .poisoned].contains(error.code) else { throw error }
    }
  }

  /// The attachments that entries name, and the last entry that was looked at.
  /// - Returns: nil where the log is damaged: a lost entry may name any file, so all are kept.
  private func attachmentsInUse() throws(TidemarkError) -> AttachmentFiles.InUse? {
    while true {
      let log = reader.snapshot
      guard log.manifest.damage.isEmpty else { return nil }
      guard let uses = try attachmentUses(in: log) else { continue }
      var hashes: Set<[UInt8]> = []
      for use in uses where !hashes.contains(use.hash) {
        // Only an open view can read a cached value that is not the present one of its key.
        if use.isCached, log.pins.isEmpty, try !isNewest(use) { continue }
        hashes.insert(use.hash)
      }
      return (hashes, log.visible)
    }
  }

  /// The entries that name attachments, in the order of the log.
  func attachmentUses() throws(TidemarkError) -> [AttachmentUse] {
    while true { if let uses = try attachmentUses(in: reader.snapshot) { return uses } }
  }

  /// - Returns: nil when a compaction has replaced a segment meanwhile.
  private func attachmentUses(in log: LogSnapshot) throws(TidemarkError) -> [AttachmentUse]? {
    var uses: [AttachmentUse] = []
    for segment in log.segments where segment.isSealed {
      guard let found = try attachmentUses(in: segment) else { return nil }
      uses += found
    }
    let sealed = log.segments.last { $0.isSealed }?.lastSequence ?? 0
    var cursor = LogCursor(reader, from: sealed + 1, through: log.visible)
    while let entry = try cursor.next() {
      if let use = try AttachmentUse(entry) { uses.append(use) }
    }
    return uses
  }

  /// Whether an entry's value is the present one of its key. The newest entry may be a touch: it
  /// renews the validity of an older put, whose value it keeps (`valueSequence`).
  func isNewest(_ use: AttachmentUse) throws(TidemarkError) -> Bool {
    guard let entry = try reader.entryIfKept(at: use.sequence),
      let slot = try reader.slot(ofKey: entry.key.rawSpan), !slot.isDeleted
    else { return false }
    if slot.sequence == use.sequence { return true }
    guard slot.size.isTouched, let newest = try reader.entryIfKept(at: slot.sequence) else {
      return false
    }
    return newest.head.valueSequence == use.sequence
  }

  /// The entries of a sealed segment that name attachments; read once, since it never changes.
  /// - Returns: nil when the segment was replaced meanwhile.
  private func attachmentUses(in segment: Segment) throws(TidemarkError) -> [AttachmentUse]? {
    if let known = reader.attachments(in: segment) { return known }
    var uses: [AttachmentUse] = []
    do throws(TidemarkError) {
      let frames = try FrameReader(segment, windowBytes: Limits.replayWindowBytes)
      for record in try segment.frames() {
        let front = try frames.front(record)
        for head in front.entries where head.attributesLength > 0 && head.kind == .put {
          let entry = LogEntry(segment: segment, front: front, head: head)
          if let use = try AttachmentUse(entry) { uses.append(use) }
        }
      }
    } catch {
      guard reader.isCurrent(segment) else { return nil }
      throw error
    }
    reader.noteAttachments(uses, in: segment)
    return uses
  }
}
