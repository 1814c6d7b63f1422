import Foundation

/// A database's files.
enum Disk {
  /// Bytes that the files take on the disk: blocks, not lengths, so that holes do not count and
  /// space reserved does.
  static func bytes(_ directory: String) -> Int {
    var sum = 0
    forEachFile(directory) { path in
      var status = stat()
      guard lstat(path, &status) == 0 else { return }
      sum += Int(status.st_blocks) * 512
    }
    return sum
  }

  /// Has the kernel forget the files' pages, so that the next reader finds a cold cache.
  static func forget(_ directory: String) {
    #if !canImport(Darwin)
      forEachFile(directory) { path in
        let file = open(path, O_RDONLY)
        guard file >= 0 else { return }
        fdatasync(file)
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
        close(file)
      }
    #endif
  }

  static func forEachFile(_ directory: String, _ body: (String) -> Void) {
    guard let names = FileManager.default.enumerator(atPath: directory) else { return }
    for case let name as String in names {
      var isDirectory: ObjCBool = false
      let path = directory + "/" + name
      if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
        !isDirectory.boolValue
      {
        body(path)
      }
    }
  }

  /// Copies a database that nobody has open, with its holes.
  static func copy(_ source: String, to target: String) throws {
    try? FileManager.default.removeItem(atPath: target)
    let process = Process()
    process.executableURL = URL(filePath: "/bin/cp")
    process.arguments = ["-R", source, target]
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw BenchError("\(source) cannot be copied") }
  }
}
