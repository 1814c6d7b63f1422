internal import TidemarkEngine

/// A store's directory as plain bytes, put on a disk in memory and taken from one.
struct FuzzDisk {
  /// Where the store lies.
  static let path = "/store"
  private static let folders = [
    StoreLayout.logDirectory, StoreLayout.indexDirectory, StoreLayout.quarantineDirectory,
  ]

  /// Content by name, relative to the store.
  var files: [String: [UInt8]] = [:]

  /// The files of a disk.
  init(reading disk: MemoryFileSystem) throws(FileSystemError) {
    for folder in [""] + Self.folders {
      let base = folder.isEmpty ? "" : folder + "/"
      guard try disk.kind(Self.path + "/" + folder) == .directory else { continue }
      for name in try disk.list(Self.path + "/" + folder) {
        let path = Self.path + "/" + base + name
        guard try disk.kind(path) == .file else { continue }
        let file = try disk.open(path, .read)
        defer { file.close() }
        files[base + name] = try file.read(try file.length(), at: 0)
      }
    }
  }

  init() {}

  /// A new disk with these files.
  func disk() throws(FileSystemError) -> MemoryFileSystem {
    let disk = MemoryFileSystem()
    try disk.createDirectory(Self.path)
    for folder in Self.folders { try disk.createDirectory(Self.path + "/" + folder) }
    for (name, content) in files {
      let file = try disk.open(Self.path + "/" + name, .create)
      defer { file.close() }
      try file.writeFully(content.rawSpan, at: 0)
    }
    return disk
  }

  /// The manifest that counts; nil when there is none that is valid.
  var manifest: Manifest? {
    StoreLayout.manifests.compactMap { name in
      files[name].flatMap { try? Manifest(decoding: $0.rawSpan) }
    }.max { $0.generation < $1.generation }
  }

  /// Makes both copies of MANIFEST the given one.
  mutating func set(_ manifest: Manifest) {
    for name in StoreLayout.manifests { files[name] = manifest.encoded() }
  }
}
