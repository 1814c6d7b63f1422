/// Checks both copies of MANIFEST.
struct ManifestVerifier {
  private struct Copy {
    /// Nil when there is no such file.
    var bytes: [UInt8]? = nil
    /// Nil when it is not whole.
    var manifest: Manifest? = nil
    /// Whether it is whole but for space that an interrupted update has added.
    var isExtended = false
    var problem = "it is missing"
  }

  /// The one that counts; nil when neither copy is whole.
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
      let problem: String?
      if let manifest {
        problem = Self.judge(copy, against: manifest)
      } else {
        problem = "both copies of MANIFEST are lost: \(copy.problem)"
      }
      guard let problem else { continue }
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

  /// An update takes space before it writes: when it ends there, zeros stand behind the old copy.
  private static func withoutExtension(_ bytes: [UInt8]) -> Manifest? {
    let bytes = bytes.rawSpan
    guard let length = try? bytes.u64(at: 24), length <= UInt64(bytes.byteCount) else { return nil }
    let count = Manifest.storedBytes(Int(length))
    guard let rest = try? bytes.slice(count, bytes.byteCount - count), rest.isZero,
      let front = try? bytes.slice(0, count)
    else { return nil }
    return try? Manifest(decoding: front)
  }

  /// Whether a killed writer left the front of the next generation over the rest of this one.
  private static func isHalfWritten(_ bytes: [UInt8], over manifest: Manifest) -> Bool {
    let place = 40
    guard let generation = try? bytes.rawSpan.u64(at: place),
      generation == manifest.generation + 1
    else { return false }
    // With the old number in its place it would be whole, were just the number damaged.
    var writer = ByteWriter()
    writer.raw(bytes)
    writer.patch(u64: manifest.generation, at: place)
    return (try? Manifest(decoding: writer.bytes.rawSpan)) == nil
  }

  /// - Returns: what is wrong with a copy; nil for nothing.
  private static func judge(_ copy: Copy, against manifest: Manifest) -> String? {
    if let other = copy.manifest {
      let differs = other.generation == manifest.generation && other != manifest
      return differs && !copy.isExtended
        ? "the copies of MANIFEST differ at the same generation" : nil
    }
    // The first update of all may have been interrupted between the copies, or within the second
    // one, when that had its space and nothing else yet.
    let isFirst = manifest.generation <= 1
    guard let bytes = copy.bytes else {
      return isFirst ? nil : "this copy of MANIFEST is missing"
    }
    if isHalfWritten(bytes, over: manifest) || isFirst && bytes.rawSpan.isZero { return nil }
    return "this copy of MANIFEST is damaged: \(copy.problem)"
  }
}
