import TidemarkTestKit

@testable import TidemarkEngine

/// A disk that calls a test before or after one certain call, so that the test can order what
/// else happens.
final class HookedDisk: ForwardingDisk {
  enum Moment { case before, after }

  private struct Hook {
    var moment: Moment
    var operation: FileSystemError.Operation
    var path: String
    var skipping: Int
    var body: @Sendable () -> Void
  }

  let base: any FileSystem
  private let hook = Lock<Hook?>(nil)

  init(_ base: any FileSystem) { self.base = base }

  /// Calls `body` once, at the next call of this kind on a path that contains `path`.
  /// - Parameter skipping: how many such calls come before.
  func once(
    _ moment: Moment, _ operation: FileSystemError.Operation, of path: String, skipping: Int = 0,
    _ body: @escaping @Sendable () -> Void
  ) {
    hook.withLock {
      $0 = Hook(
        moment: moment, operation: operation, path: path, skipping: skipping, body: body)
    }
  }

  /// Whether the call is still to come.
  var isWaiting: Bool { hook.withLock { $0 != nil } }

  /// How many such calls are still to come before it; nil when it was made.
  var skipping: Int? { hook.withLock { $0?.skipping } }

  fileprivate func reach(
    _ moment: Moment, _ operation: FileSystemError.Operation, _ path: String
  ) {
    let body = hook.withLock { hook -> (@Sendable () -> Void)? in
      guard let found = hook, found.moment == moment, found.operation == operation,
        path.contains(found.path)
      else { return nil }
      guard found.skipping == 0 else {
        hook?.skipping -= 1
        return nil
      }
      hook = nil
      return found.body
    }
    body?()
  }

  fileprivate func around<R>(
    _ operation: FileSystemError.Operation, _ path: String,
    _ call: () throws(FileSystemError) -> R
  ) throws(FileSystemError) -> R {
    reach(.before, operation, path)
    let result = try call()
    reach(.after, operation, path)
    return result
  }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    try around(.open, path) { () throws(FileSystemError) in
      HookedFile(try base.open(path, mode), path, self)
    }
  }
}

private final class HookedFile: ForwardingFile {
  let base: any File
  private let path: String
  private let disk: HookedDisk

  init(_ base: any File, _ path: String, _ disk: HookedDisk) {
    self.base = base
    self.path = path
    self.disk = disk
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    disk.reach(.before, .read, path)
    let count = try base.read(into: &buffer, at: offset)
    disk.reach(.after, .read, path)
    return count
  }
  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    disk.reach(.before, .write, path)
    return try base.write(bytes, at: offset)
  }
  func truncate(to length: Int) throws(FileSystemError) {
    try disk.around(.truncate, path) { () throws(FileSystemError) in
      try base.truncate(to: length)
    }
  }
  func allocate(to length: Int) throws(FileSystemError) {
    try disk.around(.allocate, path) { () throws(FileSystemError) in
      try base.allocate(to: length)
    }
  }
  func sync() throws(FileSystemError) {
    try disk.around(.sync, path) { () throws(FileSystemError) in try base.sync() }
  }
}

/// The messages that two threads of a test send each other; nobody waits for ever.
struct Signal: Sendable {
  private let state = Monitor(false)

  func give() {
    state.withLock { $0 = true }
    state.broadcast()
  }

  /// Waits for it.
  /// - Returns: whether it was given in time.
  @discardableResult
  func wait(milliseconds: UInt64 = 1_200_000) -> Bool {
    state.wait(timeoutNanoseconds: milliseconds * 1_000_000) { $0 }
  }
}

extension TestStore {
  func open(on disk: any FileSystem, _ access: EngineConfiguration.Access = .create) throws
    -> Engine
  {
    var configuration = configuration
    configuration.access = access
    return try Engine.open(
      path, configuration: configuration,
      environment: EngineEnvironment(
        fileSystem: disk, clock: clock, random: SeededRandom(seed: 7)))
  }

  /// Everything on the disk as it is now.
  func copy() -> [(String, [UInt8])] {
    disk.files().map { ($0, disk.contents(of: $0) ?? []) }
  }

  /// Puts an older copy in the place of what is there.
  func restore(_ copy: [(String, [UInt8])]) {
    for file in disk.files() { disk.erase(file) }
    for (file, bytes) in copy { disk.replace(file, with: bytes) }
  }
}
