public import TidemarkEngine

extension Store {
  /// Begins an attachment: content of any length, in a file beside the log.
  ///
  /// The attachment becomes part of the store with the batch that names it, see
  /// ``PutOptions/attachment``. On a full disk, writing it evicts cached entries to make room.
  public func attachmentWriter() throws(TidemarkError) -> AttachmentWriter {
    AttachmentWriter(try engine.newAttachment { [self] in makeRoom(for: $0) })
  }

  /// Writes an attachment whose content is in memory.
  /// - Returns: the attachment, for a put to name.
  public func attach(_ bytes: some BytesConvertible & Sendable) async throws(TidemarkError)
    -> StagedAttachment
  {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.attach(bytes)
    }
  }

  /// Writes an attachment from an asynchronous sequence of chunks.
  /// - Parameter chunks: the content. If it throws, nothing is kept.
  /// - Returns: the attachment, for a put to name.
  public func attach<Chunks: AsyncSequence>(
    chunks: Chunks
  ) async throws -> StagedAttachment where Chunks.Element == [UInt8] {
    let writer = try attachmentWriter()
    for try await chunk in chunks {
      try Task.checkCancellation()
      try writer.write(chunk)
    }
    return try await offPool("tidemark-file") { (_) throws(TidemarkError) in try writer.finish() }
  }

  /// Copies a file of the machine into an attachment.
  /// - Parameter path: the file's path.
  /// - Returns: the attachment, for a put to name.
  public func attach(contentsOf path: String) async throws(TidemarkError) -> StagedAttachment {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.attach(contentsOf: path)
    }
  }

  /// Keeps an attachment of this store from being swept, so that another entry can name it.
  /// - Returns: nil when the store has no file of it: neither content nor the mark of a release.
  package func staged(_ reference: AttachmentReference) throws(TidemarkError) -> StagedAttachment? {
    try engine.attachments.held(reference.engineID).map { StagedAttachment(hold: $0) }
  }

  /// Removes the content of an attachment and keeps the entries that name it. Use it for content
  /// that is safe elsewhere, such as at a peer. Readers get nil for the attachment until its
  /// content is attached again.
  ///
  /// The caller must know that the content is safe: this store cannot bring it back.
  public func releaseAttachment(_ reference: AttachmentReference) async throws(TidemarkError) {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.store.engine.releaseAttachment(reference.engineID)
    }
  }

  /// Counts the attachment files that the store holds now, and their bytes.
  public func attachmentUsage() throws(TidemarkError) -> AttachmentUsage {
    let files = engine.attachments
    var usage = AttachmentUsage()
    for hash in try files.hashes() {
      guard let bytes = try files.fileBytes(hash) else { continue }
      usage.count += 1
      usage.bytes += bytes
    }
    return usage
  }

  /// Removes the attachments that no entry names any more. The store does so by itself after
  /// compactions, and once enough has changed.
  /// - Returns: how many were removed.
  @discardableResult
  public func sweepAttachments() async throws(TidemarkError) -> AttachmentUsage {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.sweepAttachments()
    }
  }
}

extension Store.Blocking {
  /// Writes an attachment whose content is in memory.
  public func attach(_ bytes: some BytesConvertible) throws(TidemarkError) -> StagedAttachment {
    let writer = try store.attachmentWriter()
    try writer.write(bytes)
    return try writer.finish()
  }

  /// Copies the file at a path into a new attachment, and blocks the calling thread meanwhile.
  /// - Parameter path: the file's path.
  /// - Returns: the attachment. The put that names it in ``PutOptions/attachment`` makes it a part
  ///   of the store.
  public func attach(contentsOf path: String) throws(TidemarkError) -> StagedAttachment {
    let writer = try store.attachmentWriter()
    do {
      let file = try LocalFileSystem().open(path, .read)
      defer { file.close() }
      var offset = 0
      while true {
        let bytes = try file.read(AttachmentReader.chunkBytes, at: offset)
        guard !bytes.isEmpty else { break }
        try writer.write(bytes)
        offset += bytes.count
      }
    } catch let error as FileSystemError {
      throw TidemarkError(error, while: "reading the file to attach")
    } catch let error as TidemarkError {
      throw error
    } catch { throw TidemarkError(.inputOutput, "the file cannot be attached", cause: error) }
    return try writer.finish()
  }

  /// Removes the attachments that no entry names any more.
  @discardableResult
  public func sweepAttachments() throws(TidemarkError) -> AttachmentUsage {
    let report = try store.engine.sweepAttachments()
    return AttachmentUsage(count: report.removed, bytes: report.removedBytes)
  }
}

/// A number of attachments and the bytes of their files, as ``Store/attachmentUsage()`` and
/// ``Store/sweepAttachments()`` report them.
public struct AttachmentUsage: Sendable, Hashable {
  /// The number of attachments.
  public var count = 0
  /// The bytes that the files of these attachments take on the disk.
  public var bytes = 0

  /// Creates a usage of no attachments and no bytes.
  public init() {}

  init(count: Int, bytes: Int) {
    self.count = count
    self.bytes = bytes
  }
}

extension StoreReader {
  /// Opens the attachment of a key, to read its content.
  /// - Returns: nil when there is no such key, when its entry names no attachment, and when the
  ///   content was released or is at a peer: ``Entry/attachment`` tells these cases apart.
  /// - Throws: `damaged` rather than wrong content, and when the file is missing though the entry
  ///   names it; `closed`, `inputOutput`.
  public func attachment(
    forKey key: some BytesConvertible
  ) throws(TidemarkError) -> AttachmentReader? {
    guard let reference = try entry(forKey: key)?.attachment else { return nil }
    if let reader = try attachment(reference) { return reader }
    // A file of the attachment's name without content is the mark that the content is elsewhere.
    if try source.engine.attachments.contains(reference.engineID) { return nil }
    // No file at all: an error, unless the entry was evicted or overwritten since it was read, and
    // its attachment swept.
    guard try entry(forKey: key)?.attachment == reference else {
      return try attachment(forKey: key)
    }
    throw TidemarkError(
      .damaged, "an attachment that an entry names is missing; attach the content again",
      file: StoreLayout.attachmentDirectory + "/" + reference.engineID.fileName, offset: 0)
  }

  /// Opens the attachment that an entry names in ``Entry/attachment``, to read its content.
  /// - Returns: nil when its content is not here: it was released, or a peer has it.
  public func attachment(
    _ reference: AttachmentReference
  ) throws(TidemarkError) -> AttachmentReader? {
    try source.engine.openAttachment(reference.engineID).map { AttachmentReader($0) }
  }
}
