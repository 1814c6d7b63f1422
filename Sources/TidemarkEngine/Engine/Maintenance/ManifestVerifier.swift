/// Checks both copies of MANIFEST, of which the whole one of the higher generation counts.
///
/// An update raises the generation by one and writes one copy, then the other: each gets its space
/// first (zeros behind the old content), is written over from the beginning, and synced. What a
/// writer leaves that is stopped midway is no fault, since the next opening heals it.
struct ManifestVerifier {
  private struct Copy {
    /// Nil when there is no such file.
    var bytes: [UInt8]? = nil
    /// Nil when it is not whole.
    var manifest: Manifest? = nil
    /// Whether it is whole but for zeros behind it, the space that an interrupted update has added.
    var isExtended = false
    var problem = "it is missing"
  }

  /// The content of the copy that counts; nil when neither is whole.
  let manifest: Manifest?
  private(set) var findings: [VerifyFinding] = []
  /// Whether neither copy exists.
  let isMissing: Bool

  /// Reads and checks.
  /// - Throws: `formatTooNew` or `formatTooOld` when another version wrote one of the copies.
  init(_ path: String, _ fileSystem: any FileSystem) throws(TidemarkError) {
    var copies: [Copy] = []
    for name in StoreLayout.manifests { copies.append(try Self.read(name, path, fileSystem)) }
    manifest = copies.compactMap(\.manifest).max { $0.generation < $1.generation }
    isMissing = copies.allSatisfy { $0.bytes == nil }
    for (copy, name) in zip(copies, StoreLayout.manifests) {
      let lost = "both copies of MANIFEST are lost: \(copy.problem)"
      guard let problem = manifest.map({ Self.judge(copy, against: $0) }) ?? lost else { continue }
      findings.append(
        VerifyFinding(
          file: name, offset: 0, message: problem,
          remedy: manifest == nil ? VerifyRemedy.repair(path) : VerifyRemedy.opening,
          isDamageToAcknowledged: manifest == nil))
    }
  }

  private static func read(
    _ name: String, _ path: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) -> Copy {
    var copy = Copy()
    let bytes: [UInt8]
    do {
      let file = TolerantFile(try fileSystem.open(path + "/" + name, .read))
      defer { file.close() }
      bytes = try file.read(Limits.manifestBytes + 1, at: 0)
    } catch {
      if error.number == ErrorNumber.noEntry { return copy }
      if error.isUnreadable { return Copy(bytes: [], problem: "the disk cannot read it") }
      throw TidemarkError(error, while: "reading MANIFEST")
    }
    copy.bytes = bytes
    do throws(FormatError) {
      guard bytes.count <= Limits.manifestBytes else { throw FormatError("too long") }
      copy.manifest = try Manifest(decoding: bytes.rawSpan)
    } catch {
      if let refusal = ManifestStore.refusal(error, name) { throw refusal }
      copy.problem = error.reason
      copy.manifest = withoutExtension(bytes)
      copy.isExtended = copy.manifest != nil
    }
    return copy
  }

  /// Decodes a copy without zeros behind it. Bytes 24 to 31 are the length that it says of itself.
  private static func withoutExtension(_ bytes: [UInt8]) -> Manifest? {
    let bytes = bytes.rawSpan
    guard let length = try? bytes.u64(at: 24), length <= UInt64(bytes.byteCount) else { return nil }
    let count = Manifest.storedBytes(Int(length))
    guard let rest = try? bytes.slice(count, bytes.byteCount - count), rest.isZero,
      let front = try? bytes.slice(0, count)
    else { return nil }
    return try? Manifest(decoding: front)
  }

  /// Whether a writer was stopped within an update of a copy: its beginning, with the generation in
  /// bytes 40 to 47, is that of the next generation, and the rest still that of `manifest`.
  private static func isHalfWritten(_ bytes: [UInt8], over manifest: Manifest) -> Bool {
    let place = 40
    guard let generation = try? bytes.rawSpan.u64(at: place),
      generation == manifest.generation + 1
    else { return false }
    // Where the present generation in its place makes the copy whole, only that field is damaged.
    var writer = ByteWriter()
    writer.raw(bytes)
    writer.patch(u64: manifest.generation, at: place)
    return (try? Manifest(decoding: writer.bytes.rawSpan)) == nil
  }

  /// - Returns: what is wrong with a copy; nil for nothing.
  private static func judge(_ copy: Copy, against manifest: Manifest) -> String? {
    if let other = copy.manifest {
      // `ManifestStore.reserve` writes both copies longer, with newer counters and no new number:
      // an extended copy was about to follow the other.
      let differs = other.generation == manifest.generation && other != manifest
      return differs && !copy.isExtended
        ? "the copies of MANIFEST differ at the same generation" : nil
    }
    // The update that creates a store may stop between both, or with just space in the second copy.
    let isFirst = manifest.generation <= 1
    guard let bytes = copy.bytes else { return isFirst ? nil : "this copy of MANIFEST is missing" }
    if isHalfWritten(bytes, over: manifest) || isFirst && bytes.rawSpan.isZero { return nil }
    return "this copy of MANIFEST is damaged: \(copy.problem)"
  }
}
