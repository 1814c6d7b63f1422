/// Reads and updates the two copies of MANIFEST.
///
/// An update counts the generation up and goes to both, one after the other, each synced: whenever
/// the machine stops at least one of them is whole. A reader takes the valid one of the higher
/// generation. Updates of a store run one at a time: their callers hold the lock of its writer.
package final class ManifestStore: Sendable {
  private let fileSystem: any FileSystem
  private let storePath: String
  /// The copy to write first: that which a failed write may have broken, never the only whole one.
  private let suspect = Lock(0)
  /// How long the copies are, 0 where unknown: so much can be written without space of the disk.
  private let lengths = Lock([0, 0])

  package init(_ fileSystem: any FileSystem, storePath: String) {
    self.fileSystem = fileSystem
    self.storePath = storePath
  }

  /// The contents of the two copies.
  package struct Loaded: Sendable {
    package var manifest: Manifest
    /// The copy that won.
    package var winner: Int
    /// Whether both copies are whole and equal.
    package var areEqual: Bool
    /// The fault of the other copy; nil when it has none.
    package var otherProblem: FormatError?
  }

  private enum Copy {
    case missing
    case unreadable(FileSystemError)
    case invalid(FormatError)
    case valid(Manifest)
  }

  /// Reads both copies. One that the disk cannot read is as good as a damaged one, as long as the
  /// other is whole.
  /// - Returns: nil when neither exists.
  /// - Throws: `damaged` when no copy is whole, `formatTooNew` or
  ///   `formatTooOld` when another version wrote it.
  package func load() throws(TidemarkError) -> Loaded? {
    var copies: [Copy] = []
    var decoded: (bytes: [UInt8], manifest: Manifest)?
    for copy in StoreLayout.manifests.indices { copies.append(try read(copy, &decoded)) }
    var best: (Int, Manifest)?
    var problem: FormatError?
    var failure: FileSystemError?
    for (i, copy) in copies.enumerated() {
      switch copy {
      case .unreadable(let error):
        failure = error
        problem = problem ?? FormatError("the disk cannot read a copy of MANIFEST")
      case .missing: problem = problem ?? FormatError("a copy of MANIFEST is missing")
      // A copy that a later version wrote tells more than one that is damaged.
      case .invalid(let error):
        if problem?.isNewer != true, problem?.isOlder != true { problem = error }
      case .valid(let manifest):
        if best == nil || manifest.generation > best?.1.generation ?? 0 { best = (i, manifest) }
      }
    }
    if let problem, let refusal = Self.refusal(problem, StoreLayout.manifests[0]) { throw refusal }
    guard let (winner, manifest) = best else {
      if case .missing = copies[0], case .missing = copies[1] { return nil }
      if let failure { throw TidemarkError(failure, while: "reading MANIFEST") }
      throw TidemarkError(
        .damaged, "both copies of MANIFEST are damaged; repair what is left into a new store",
        file: StoreLayout.manifests[0], offset: 0, cause: problem)
    }
    var areEqual = false
    if case .valid(let other) = copies[1 - winner] { areEqual = other == manifest }
    return Loaded(manifest: manifest, winner: winner, areEqual: areEqual, otherProblem: problem)
  }

  /// The error that a copy of another version of the format is refused with; nil for all others.
  static func refusal(_ problem: FormatError, _ file: String) -> TidemarkError? {
    if problem.isNewer {
      return TidemarkError(
        .formatTooNew, "the store was written by a later version; use that or a newer one",
        file: file, cause: problem)
    }
    guard problem.isOlder else { return nil }
    return TidemarkError(
      .formatTooOld,
      "the store was \(problem.reason), which is read no more; export it with the version that "
        + "wrote it, and import that into a new store",
      file: file, cause: problem)
  }

  /// - Parameter decoded: the copy that was read before, if it is whole. One with the same bytes,
  ///   as most have, is not decoded again.
  private func read(
    _ copy: Int, _ decoded: inout (bytes: [UInt8], manifest: Manifest)?
  ) throws(TidemarkError) -> Copy {
    lengths.withLock { $0[copy] = 0 }
    do {
      let file = try fileSystem.open(storePath + "/" + StoreLayout.manifests[copy], .read)
      defer { file.close() }
      let length = try file.length()
      lengths.withLock { $0[copy] = length }
      guard length <= Limits.manifestBytes else { return .invalid(FormatError("too long")) }
      let bytes = try file.read(length, at: 0)
      if let decoded, decoded.bytes == bytes { return .valid(decoded.manifest) }
      do throws(FormatError) {
        let manifest = try Manifest(decoding: bytes.rawSpan)
        decoded = (bytes, manifest)
        return .valid(manifest)
      } catch { return .invalid(error) }
    } catch {
      if error.number == ErrorNumber.noEntry { return .missing }
      if error.isUnreadable { return .unreadable(error) }
      throw TidemarkError(error, while: "reading MANIFEST")
    }
  }

  /// Makes both copies long enough for an update, so that none stops midway on a full disk.
  /// - Parameters:
  ///   - next: about what is to be written; it may grow by a few fields until then.
  ///   - current: what stands in both copies now, and is written again with zeros behind it.
  /// - Throws: the current state still stands in both copies then, or in one if the disk failed.
  package func reserve(for next: Manifest, current: Manifest) throws(TidemarkError) {
    let count = next.encoded(sparing: 512).count
    guard lengths.withLock({ $0.contains { $0 < count } }) else { return }
    let bytes = current.encoded(atLeast: count)
    let first = suspect.withLock { $0 }
    for copy in [first, 1 - first] where lengths.withLock({ $0[copy] < count }) {
      suspect.withLock { $0 = copy }
      do throws(ManifestUpdateError) { try write(bytes, to: copy) } catch { throw error.cause }
    }
  }

  /// Writes the next generation to both copies.
  /// - Parameter manifest: its generation is counted up first.
  package func update(_ manifest: inout Manifest) throws(TidemarkError) {
    do throws(ManifestUpdateError) { try advance(&manifest) } catch { throw error.cause }
  }

  /// Like ``update(_:)``, with an error that says whether a copy may have changed.
  package func advance(_ manifest: inout Manifest) throws(ManifestUpdateError) {
    if let excess = manifest.excess {
      throw ManifestUpdateError(
        cause: TidemarkError(.limitExceeded, "the store would have \(excess); compact it"),
        hasBegun: false)
    }
    manifest.generation += 1
    let bytes = manifest.encoded()
    do throws(FormatError) { try manifest.checkOrder() } catch {
      throw ManifestUpdateError(
        cause: TidemarkError(.inputOutput, "the new MANIFEST contradicts itself", cause: error),
        hasBegun: false)
    }
    let first = suspect.withLock { $0 }
    try write(bytes, to: first)
    if PlantedBug.isOn(.oneManifestCopy) { return }
    // The first copy is on the disk by now, so that the other may be broken.
    suspect.withLock { $0 = 1 - first }
    do throws(ManifestUpdateError) { try write(bytes, to: 1 - first) } catch {
      throw ManifestUpdateError(cause: error.cause, hasBegun: true)
    }
  }

  /// Makes both copies equal, and durable, after an opening that may have found them otherwise. The
  /// winner is written over itself first, since a failed sync may have left it in the kernel's
  /// memory only. That is safe: either the disk gets equal bytes, or the other copy is whole.
  package func heal(_ loaded: Loaded) throws(TidemarkError) {
    let bytes = loaded.manifest.encoded()
    suspect.withLock { $0 = 1 - loaded.winner }
    do throws(ManifestUpdateError) {
      try write(bytes, to: loaded.winner)
      try write(bytes, to: 1 - loaded.winner)
    } catch { throw error.cause }
  }

  private func write(_ bytes: [UInt8], to copy: Int) throws(ManifestUpdateError) {
    let path = storePath + "/" + StoreLayout.manifests[copy]
    var hasBegun = false
    do {
      let isNew = try fileSystem.kind(path) == nil
      let file = try fileSystem.open(path, isNew ? .create : .readWrite)
      defer { file.close() }
      // Until the copy is written whole, nothing is known of its length.
      let length = lengths.withLock { lengths in
        defer { lengths[copy] = 0 }
        return isNew ? 0 : lengths[copy]
      }
      if length < bytes.count { try file.allocate(to: bytes.count) }
      hasBegun = true
      try file.writeFully(bytes.rawSpan, at: 0)
      if length != bytes.count { try file.truncate(to: bytes.count) }
      lengths.withLock { $0[copy] = bytes.count }
      if PlantedBug.isOn(.firstManifestNotSynced), !isNew, suspect.withLock({ $0 == copy }) {
        return
      }
      try file.sync()
      if isNew { try fileSystem.syncDirectory(storePath) }
    } catch {
      throw ManifestUpdateError(
        cause: TidemarkError(error, while: "writing MANIFEST"), hasBegun: hasBegun)
    }
  }
}

/// Why MANIFEST could not be written.
package struct ManifestUpdateError: Error {
  package var cause: TidemarkError
  /// Whether a copy may have changed.
  package var hasBegun: Bool
}
