/// Checks both copies of MANIFEST.
struct ManifestVerifier {
  private enum Copy {
    case missing
    case damaged([UInt8], FormatError)
    case whole(Manifest)
    /// Whole, but for space that an interrupted update has added.
    case extended(Manifest)
  }

  /// The one that counts; nil when neither copy is whole.
  private(set) var manifest: Manifest?
  private(set) var findings: [VerifyFinding] = []
  /// Whether neither copy exists.
  private(set) var isMissing = false

  private let path: String
  private let fileSystem: any FileSystem

  /// Reads and checks.
  /// - Throws: `formatTooNew` or `formatTooOld` when another version wrote one of the copies.
  init(_ path: String, _ fileSystem: any FileSystem) throws(TidemarkError) {
    self.path = path
    self.fileSystem = fileSystem
    var copies: [Copy] = []
    for name in StoreLayout.manifests { copies.append(try read(name)) }
    for copy in copies {
      guard let found = Self.manifest(of: copy) else { continue }
      if found.generation > manifest?.generation ?? 0 || manifest == nil { manifest = found }
    }
    guard let manifest else {
      judgeBothLost(copies)
      return
    }
    for (copy, name) in zip(copies, StoreLayout.manifests) {
      judge(copy, name: name, against: manifest)
    }
  }

  private static func manifest(of copy: Copy) -> Manifest? {
    switch copy {
    case .whole(let manifest), .extended(let manifest): manifest
    case .missing, .damaged: nil
    }
  }

  private func read(_ name: String) throws(TidemarkError) -> Copy {
    let bytes: [UInt8]
    do {
      let file = TolerantFile(try fileSystem.open(path + "/" + name, .read))
      defer { file.close() }
      bytes = try file.read(Limits.manifestBytes + 1, at: 0)
    } catch {
      if error.number == ErrorNumber.noEntry { return .missing }
      if error.isUnreadable { return .damaged([], FormatError("the disk cannot read it")) }
      throw TidemarkError(error, while: "reading MANIFEST")
    }
    do throws(FormatError) {
      guard bytes.count <= Limits.manifestBytes else { throw FormatError("too long") }
      return .whole(try Manifest(decoding: bytes.rawSpan))
    } catch {
      if let refusal = ManifestStore.refusal(error, name) { throw refusal }
      if let manifest = Self.withoutExtension(bytes) { return .extended(manifest) }
      return .damaged(bytes, error)
    }
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

  private mutating func judgeBothLost(_ copies: [Copy]) {
    if case .missing = copies[0], case .missing = copies[1] { isMissing = true }
    for (copy, name) in zip(copies, StoreLayout.manifests) {
      let reason =
        switch copy {
        case .damaged(_, let error): error.reason
        default: "it is missing"
        }
      findings.append(
        VerifyFinding(
          file: name, offset: 0, message: "both copies of MANIFEST are lost: \(reason)",
          remedy: VerifyRemedy.repair(path), isDamageToAcknowledged: true))
    }
  }

  private mutating func judge(_ copy: Copy, name: String, against manifest: Manifest) {
    let problem: String
    switch copy {
    case .extended: return
    case .whole(let other):
      guard other.generation == manifest.generation, other != manifest else { return }
      problem = "the copies of MANIFEST differ at the same generation"
    case .missing:
      // The first update of all may have been interrupted between the copies.
      guard manifest.generation > 1 else { return }
      problem = "this copy of MANIFEST is missing"
    case .damaged(let bytes, let error):
      guard !Self.isHalfWritten(bytes, over: manifest) else { return }
      // Or within the second one, when that had its space and nothing else yet.
      if manifest.generation <= 1, bytes.rawSpan.isZero { return }
      problem = "this copy of MANIFEST is damaged: \(error.reason)"
    }
    findings.append(
      VerifyFinding(
        file: name, offset: 0, message: problem, remedy: VerifyRemedy.opening,
        isDamageToAcknowledged: false))
  }
}
