internal import TidemarkEngine

/// Patches the files of a small store and uses it. The body is a list of patches, see ``Patch``.
/// Options: bit 1, MANIFEST is made to fit the segments; bit 2, the store was closed, not killed;
/// bits 3 and 4, what is done: read, verify, repair, write.
enum StoreFuzz {
  /// ```
  /// u8  file, by its place in the list of names
  /// u8  bits 0-2: what is done; bit 7: the offset counts bytes that are not zero
  /// u16 offset, modulo the file's length
  /// u8  n, then n bytes
  /// ```
  private enum Patch: UInt8 {
    case overwrite, xor, cut, zeros, remove, copy, add, insert
  }

  private static let patchLimit = 8

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    let bases = FuzzStore.all
    guard bases.count == 2 else { throw FuzzFinding("the store to begin with cannot be made") }
    let base = bases[input.flag(2) ? 1 : 0]
    var store = base.disk
    let touched = patch(&store, input.body)
    if input.repairs { repair(&store, touched, base, fits: input.flag(1)) }
    guard let disk = try? store.disk() else { return }
    let exercise = StoreExercise(disk, expected: input.repairs ? nil : base)
    switch input.options >> 3 & 3 {
    case 0: try exercise.read()
    case 1:
      try exercise.verify()
      try exercise.read()
    case 2:
      if try exercise.repair() { try exercise.write(path: StoreExercise.repaired) }
    default:
      try exercise.write(path: FuzzDisk.path)
      try StoreExercise(disk, expected: nil).verify()
    }
  }

  // MARK: Patching

  /// Applies the patches.
  /// - Returns: the names of the files that were changed.
  private static func patch(_ store: inout FuzzDisk, _ body: [UInt8]) -> [String] {
    let names = store.files.keys.sorted()
    let before = store.files
    var touched: [String] = []
    var offset = 0
    for _ in 0..<patchLimit where offset + 5 <= body.count {
      let name = names[Int(body[offset]) % names.count]
      let count = Int(body[offset + 4])
      let bytes = Array(body[(offset + 5)..<min(body.count, offset + 5 + count)])
      if !touched.contains(name) { touched.append(name) }
      if var file = store.files[name], !file.isEmpty {
        let place = place(
          Int(body.word16(offset + 2)), in: file, skipsZeros: body[offset + 1] & 0x80 != 0)
        let other = names[Int(bytes.first ?? 0) % names.count]
        let isKept = change(
          &file, Patch(rawValue: body[offset + 1] & 7) ?? .xor, at: place, bytes,
          other: before[other] ?? [])
        store.files[name] = isKept ? file : nil
      }
      offset += 5 + count
    }
    return touched
  }

  private static func place(_ offset: Int, in file: [UInt8], skipsZeros: Bool) -> Int {
    guard skipsZeros else { return offset % file.count }
    let places = file.indices.filter { file[$0] != 0 }
    return places.isEmpty ? 0 : places[offset % places.count]
  }

  /// Changes a file.
  /// - Returns: whether it still stands there.
  private static func change(
    _ file: inout [UInt8], _ patch: Patch, at place: Int, _ bytes: [UInt8], other: [UInt8]
  ) -> Bool {
    let end = min(file.count, place + bytes.count)
    switch patch {
    case .overwrite: file.replaceSubrange(place..<end, with: bytes.prefix(end - place))
    case .xor: file[place] ^= bytes.first.map { $0 == 0 ? 1 : $0 } ?? 0x80
    case .cut: file.removeLast(file.count - place)
    case .zeros: file.append(contentsOf: repeatElement(0, count: 64 * bytes.count))
    case .remove: return false
    case .copy: file = other
    case .add:
      for i in 0..<(end - place) { file[place + i] &+= bytes[i] }
    case .insert: file.insert(contentsOf: bytes, at: place)
    }
    return true
  }

  // MARK: Repair

  private static func repair(
    _ store: inout FuzzDisk, _ touched: [String], _ base: FuzzStore, fits: Bool
  ) {
    let rows = base.manifest?.segments ?? []
    for name in touched {
      guard var bytes = store.files[name] else { continue }
      if StoreLayout.manifests.contains(name) {
        ChecksumRepair.manifest(&bytes, fits: true)
      } else if name.hasPrefix(StoreLayout.indexDirectory) {
        ChecksumRepair.run(&bytes)
      } else if let row = rows.first(where: { name.hasSuffix($0.fileName) }) {
        ChecksumRepair.segment(&bytes, salt: row.salt, isSealed: row.state == .sealed)
      }
      store.files[name] = bytes
    }
    if fits, var manifest = store.manifest {
      fit(&manifest, &store)
      store.set(manifest)
    }
  }

  /// Makes the rows of MANIFEST, and the chains, those of the files.
  private static func fit(_ manifest: inout Manifest, _ store: inout FuzzDisk) {
    for i in manifest.segments.indices where manifest.segments[i].state == .sealed {
      let row = manifest.segments[i]
      let name = StoreLayout.logDirectory + "/" + row.fileName
      guard var bytes = store.files[name] else { continue }
      let footer = bytes.count - FormatConstants.segmentFooterBytes
      guard footer >= FormatConstants.segmentHeaderBytes else { continue }
      let end = Int(min(bytes.word64(footer + 32), UInt64(footer)))
      var offset = Int(bytes.word32(60))
      var chain: UInt64 = 0
      while offset + FormatConstants.frameHeaderBytes <= end {
        let header = offset..<(offset + FormatConstants.frameHeaderBytes)
        chain = XXH64.hash(bytes.rawSpan.extracting(header), seed: chain)
        offset += (FormatConstants.frameHeaderBytes + Int(bytes.word32(offset + 8)) + 7) & ~7
      }
      bytes.set(chain, at: footer + 56)
      _ = ChecksumRepair.locator(&bytes, salt: row.salt, locatorAt: nil)
      store.files[name] = bytes
      manifest.segments[i].chain = chain
      manifest.segments[i].length = bytes.count
      manifest.segments[i].entryCount = Int(bytes.word32(footer + 44))
    }
    for i in manifest.runs.indices {
      let name = StoreLayout.indexDirectory + "/" + manifest.runs[i].fileName
      if let bytes = store.files[name] { manifest.runs[i].length = bytes.count }
    }
  }

  // MARK: Seeds

  /// A patch of every kind to every file, once with repair and once without.
  static func seeds() -> [[UInt8]] {
    guard let base = FuzzStore.all.first else { return [] }
    var seeds: [[UInt8]] = []
    for stage: UInt8 in 0..<4 {
      for low: UInt8 in [0, 3, 4, 7] { seeds.append([low | stage << 3]) }
    }
    for file in 0..<UInt8(base.disk.files.count) {
      for kind: UInt8 in 0..<8 {
        let low: UInt8 = kind & 1 == 0 ? 3 : 0
        let place = UInt8(truncatingIfNeeded: 37 &* Int(kind) + 11 * Int(file))
        seeds.append(
          [low | (kind ^ file) & 3 << 3 | file & 1 << 2]
            + [file, kind | 0x80, place, file, 4, kind, 0xff, 0x80, 1])
      }
    }
    return seeds
  }
}
