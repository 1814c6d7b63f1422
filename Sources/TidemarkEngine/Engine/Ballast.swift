/// Space that is set aside for the day on which the disk is full.
///
/// A full disk must not keep anybody from closing a store cleanly, or from compacting it, which
/// makes room; but both need some room first. The file says nothing and is never read: whatever
/// stands there is as good as nothing.
struct Ballast: Sendable {
  private static let leastBytes = 1 << 20
  private static let mostBytes = 64 << 20

  let fileSystem: any FileSystem
  let storePath: String

  private var path: String { storePath + "/" + StoreLayout.ballast }

  /// How much is to be set aside for a log: 5 % of it, from 1 to 64 MiB.
  /// - Parameters:
  ///   - bytes: the log's.
  ///   - least: a smaller log gets none.
  static func wanted(forLog bytes: Int, from least: Int) -> Int {
    bytes < least ? 0 : min(max(bytes / 20, leastBytes), mostBytes)
  }

  /// Bytes that are set aside now.
  var bytes: Int {
    guard let file = try? fileSystem.open(path, .read) else { return 0 }
    defer { file.close() }
    return (try? file.length()) ?? 0
  }

  /// Sets space aside, if there is any; what is about right stays as it is.
  func provide(_ wanted: Int) {
    let present = bytes
    guard present < wanted || present / 2 > wanted else { return }
    guard let file = openOrCreate() else { return }
    defer { file.close() }
    do {
      // Bytes that were never allocated, in a copy of the store, say, would be of no use.
      try file.truncate(to: 0)
      try file.allocate(to: wanted)
    } catch { try? file.truncate(to: 0) }
  }

  /// Gives the space back to the disk.
  /// - Returns: whether there was any.
  func release() -> Bool {
    guard bytes > 0, let file = try? fileSystem.open(path, .readWrite) else { return false }
    defer { file.close() }
    do { try file.truncate(to: 0) } catch { return false }
    return true
  }

  /// Takes a step, and takes it once more without the ballast when the disk is full.
  func whenFull<R>(_ step: () throws(TidemarkError) -> R) throws(TidemarkError) -> R {
    do { return try step() } catch {
      guard error.code == .noSpace, release() else { throw error }
      return try step()
    }
  }

  private func openOrCreate() -> (any File)? {
    if let file = try? fileSystem.open(path, .readWrite) { return file }
    return try? fileSystem.open(path, .create)
  }
}

extension Engine {
  var ballast: Ballast { Ballast(fileSystem: environment.fileSystem, storePath: path) }

  /// Sets as much space aside as the log calls for. That there is none is no error.
  /// - Parameter mayShrink: whether there may be more set aside than the log calls for.
  func provideBallast(mayShrink: Bool = false) {
    writer.withLock { $0.bytesSinceBallast = 0 }
    let segments = reading.withLock { $0.segments }
    let log = segments.reduce(0) { $0 + ((try? $1.usedLength()) ?? 0) }
    let wanted = Ballast.wanted(forLog: log, from: configuration.ballastFromLogBytes)
    if wanted > 0 || mayShrink { ballast.provide(wanted) }
  }
}
