public import TidemarkEngine

extension Store {
  /// Begins an attachment: content of any length, in a file beside the log.
  ///
  /// It becomes part of the store with the batch that names it, see ``PutOptions/attachment``.
  public func attachmentWriter() throws(TidemarkError) -> AttachmentWriter {
    AttachmentWriter(try engine.newAttachment { [self] in makeRoom(for: $0) })
  }

  /// Writes an attachment whose content is in memory.
  /// - Returns: what a put is to name.
  public func attach(_ bytes: some BytesConvertible & Sendable) async throws(TidemarkError)
    -> StagedAttachment
  {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.attach(bytes)
    }
  }

  /// Writes an attachment from chunks as they come.
  ///
  /// - Parameter chunks: the content. Where it throws, nothing is kept.
  /// - Returns: what a put is to name.
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
  /// - Parameter path: the file's.
  /// - Returns: what a put is to name.
  public func attach(contentsOf path: String) async throws(TidemarkError) -> StagedAttachment {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.attach(contentsOf: path)
    }
  }

  /// Holds on to an attachment whose content is here, so that another entry can name it.
  /// - Returns: nil where it is not here.
  package func staged(
    _ reference: AttachmentReference
  ) throws(TidemarkError) -> StagedAttachment? {
    try engine.attachments.held(reference.id).map { StagedAttachment(hold: $0) }
  }

  /// Takes the content of an attachment away and leaves its entries: for content that is safe
  /// elsewhere, such as at a peer. Until it is attached again, reading it finds nothing.
  ///
  /// It is the caller's word that the content is safe: this store cannot give it back.
  public func releaseAttachment(_ reference: AttachmentReference) async throws(TidemarkError) {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.store.engine.releaseAttachment(reference.id)
    }
  }

  /// The attachments of the store, as their files are now.
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
  /// - Returns: the removed ones.
  @discardableResult
  public func sweepAttachments() async throws(TidemarkError) -> AttachmentUsage {
    try await offPool("tidemark-file") { (blocking) throws(TidemarkError) in
      try blocking.sweepAttachments()
    }
  }
}

// MARK: - A full disk

extension Store {
  /// Makes room on a full disk: what caches have given up goes, then what they would give up next,
  /// more and more until the disk has some back. Values of the log take some room first: of one of
  /// its files at least that has much to lose, the rest is written anew. While views or damage keep
  /// what is given up, nothing would come of it.
  /// - Parameters:
  ///   - bytes: how much is needed.
  ///   - isFull: whether a write has failed with `noSpace`. If not, the active segment is not
  ///     sealed, and no more than `bytes` are evicted.
  /// - Returns: whether there is more room now.
  func makeRoom(for bytes: Int, isFull: Bool = true) -> Bool {
    do throws(TidemarkError) {
      if try giveBack(isFull) { return true }
      guard try holdsRoom(for: bytes) else { return false }
      var goal = max(bytes, Self.leastEvicted)
      while !engine.keepsCached, try evict(goal) {
        if try giveBack(isFull) { return true }
        guard isFull else { return false }
        goal *= 2
      }
      return false
    } catch { return false }
  }

  /// Bytes of entries that are evicted at a time on a full disk, at least. Where the evictions
  /// themselves cannot be written, as many bytes of the ballast file are released for them.
  private static let leastEvicted = 64 << 10

  /// Whether free space and all that eviction can free may suffice for a write. If not, caches are
  /// not emptied for a write that fails all the same.
  private func holdsRoom(for bytes: Int) throws(TidemarkError) -> Bool {
    guard let free = engine.freeBytes else { return true }
    var room = free + engine.looseBytes
    for region in caches.withLock({ $0 }) where room < bytes {
      if try !hasCollection(region) { room += try region.heldBytes() }
    }
    return room >= bytes
  }

  /// Removes attachments and log entries of evicted cached values from the disk.
  /// - Parameter isFull: whether the active segment may be sealed, so that it is compacted, too.
  private func giveBack(_ isFull: Bool) throws(TidemarkError) -> Bool {
    if try engine.sweepAttachments().removedBytes > 0 { return true }
    return try engine.purgeCaches(seals: isFull)
  }

  /// Gives up cached entries, those that were used least recently first. A cache that equals a
  /// server's collection keeps what it has.
  /// - Returns: false where there is none.
  private func evict(_ bytes: Int) throws(TidemarkError) -> Bool {
    var batch = WriteBatch()
    var freed = 0
    var evicted: [CacheRegion] = []
    for region in caches.withLock({ $0 }) where freed < bytes {
      guard try !hasCollection(region) else { continue }
      for sequence in try region.leastRecent(.max) where freed < bytes {
        guard let use = region.use(of: sequence), let entry = try engine.entryIfKept(at: sequence),
          let slot = try engine.slot(ofKey: entry.key.rawSpan), slot.isLiveCached
        else { continue }
        try batch.operations.addEviction(of: entry.key.rawSpan, at: slot.sequence)
        freed += max(1, use.bytes)
        evicted.append(region)
      }
    }
    guard freed > 0 else { return false }
    do throws(TidemarkError) { _ = try attempt(batch.operations, nil, true) } catch {
      guard error.code == .noSpace, engine.releaseBallast(Self.leastEvicted) else { throw error }
      _ = try attempt(batch.operations, nil, true)
    }
    for region in evicted { region.count { $0.evictions += 1 } }
    return true
  }
}

extension Store.Blocking {
  /// Writes an attachment whose content is in memory.
  public func attach(_ bytes: some BytesConvertible) throws(TidemarkError) -> StagedAttachment {
    let writer = try store.attachmentWriter()
    try writer.write(bytes)
    return try writer.finish()
  }

  /// Copies a file of the machine into an attachment.
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

/// A number of attachments, and the bytes that their files take.
public struct AttachmentUsage: Sendable, Hashable {
  /// How many there are.
  public var count = 0
  /// Bytes on the disk.
  public var bytes = 0

  /// None.
  public init() {}

  init(count: Int, bytes: Int) {
    self.count = count
    self.bytes = bytes
  }
}

extension StoreReader {
  /// Opens the attachment of a key.
  /// - Returns: nil when there is no such key, when its entry names no attachment, and when the
  ///   content was released or is at a peer: ``Entry/attachment`` tells these apart.
  /// - Throws: `damaged` rather than wrong content, and where the file of content is missing that
  ///   should be here; `closed`, `inputOutput`.
  public func attachment(
    forKey key: some BytesConvertible
  ) throws(TidemarkError) -> AttachmentReader? {
    guard let reference = try entry(forKey: key)?.attachment else { return nil }
    if let reader = try attachment(reference) { return reader }
    // The note that content is elsewhere is a file, too.
    if try source.engine.attachments.contains(reference.id) { return nil }
    // A cached entry may have been given up meanwhile.
    guard try entry(forKey: key)?.attachment == reference else {
      return try attachment(forKey: key)
    }
    throw TidemarkError(
      .damaged, "an attachment that an entry names is missing; attach the content again",
      file: StoreLayout.attachmentDirectory + "/" + reference.id.fileName, offset: 0)
  }

  /// Opens an attachment that an entry names.
  /// - Returns: nil when its content is not here: it was released, or a peer has it.
  public func attachment(
    _ reference: AttachmentReference
  ) throws(TidemarkError) -> AttachmentReader? {
    try source.engine.openAttachment(reference.id).map { AttachmentReader($0) }
  }
}
