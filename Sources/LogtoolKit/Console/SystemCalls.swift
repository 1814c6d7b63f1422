#if canImport(Darwin)
  internal import Darwin
  internal import MachO.dyld
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif
internal import Synchronization
internal import TidemarkEngine

// SAFETY: every buffer is passed with its own length, structures are filled by the call that they
// are given to, C strings are copied at once, and the signal handler touches two atomics and calls
// `_exit` only.

// C's functions, which `SystemCalls` cannot call by name: it has methods of the same names.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  unsafe write(descriptor, bytes, count)
}

private func systemRead(
  _ descriptor: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int
) -> Int {
  unsafe read(descriptor, bytes, count)
}

private func systemOpen(_ path: String, _ flags: Int32) -> Int32 {
  unsafe open(path, flags | O_CLOEXEC, 0o600)
}

private func systemClose(_ descriptor: Int32) { close(descriptor) }

/// The calls of the system that the tool makes itself: streams that cannot seek, the terminal,
/// signals. Everything about a store goes through the engine's file system.
enum SystemCalls {
  /// A failed call, with the system's error number.
  struct Failure: Error, Hashable {
    var number: Int32

    static let closedPipe = Failure(number: EPIPE)
    /// The system's words for it.
    var reason: String { ErrorNumber.text(number) }
  }

  /// Writes all bytes.
  static func write(_ bytes: RawSpan, to descriptor: Int32) throws(Failure) {
    var done = 0
    while done < bytes.byteCount {
      let rest = bytes.extracting(droppingFirst: done)
      let count = unsafe rest.withUnsafeBytes { buffer in
        unsafe systemWrite(descriptor, buffer.baseAddress, buffer.count)
      }
      if count >= 0 {
        done += count
      } else if errno != EINTR {
        throw Failure(number: errno)
      }
    }
  }

  /// Appends up to `count` bytes.
  /// - Returns: false at the end of the stream.
  static func read(
    _ count: Int, from descriptor: Int32, into bytes: inout [UInt8]
  ) throws(Failure) -> Bool {
    while true {
      var result = 0
      bytes.append(addingCapacity: count) { span in
        unsafe span.withUnsafeMutableBufferPointer { buffer, written in
          result = unsafe systemRead(descriptor, buffer.baseAddress, count)
          written = max(result, 0)
        }
      }
      if result >= 0 { return result > 0 }
      if errno != EINTR { throw Failure(number: errno) }
    }
  }

  /// Waits until a read would not block.
  /// - Returns: false when the time was over first, or a signal came.
  static func waitForInput(on descriptor: Int32, milliseconds: Int32) -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&request, 1, milliseconds) > 0
  }

  /// Opens a file for reading.
  static func open(_ path: String) throws(Failure) -> Int32 {
    while true {
      let descriptor = systemOpen(path, O_RDONLY)
      if descriptor >= 0 { return descriptor }
      if errno != EINTR { throw Failure(number: errno) }
    }
  }

  /// Opens a file for writing, empty, and makes it when there is none; for its owner only, since
  /// what is exported may be anybody's notes.
  static func create(_ path: String) throws(Failure) -> Int32 {
    while true {
      let descriptor = systemOpen(path, O_WRONLY | O_CREAT | O_TRUNC)
      if descriptor >= 0 { return descriptor }
      if errno != EINTR { throw Failure(number: errno) }
    }
  }

  static func close(_ descriptor: Int32) { systemClose(descriptor) }

  /// The kind of file that is open at a descriptor: its length if it is a regular file, and whether
  /// it is a directory.
  static func inspect(_ descriptor: Int32) -> (length: Int?, isDirectory: Bool) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return (nil, false) }
    let kind = status.st_mode & S_IFMT
    return (kind == S_IFREG ? Int(status.st_size) : nil, kind == S_IFDIR)
  }

  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// The width of a terminal in columns; nil when it does not say.
  static func columns(of descriptor: Int32) -> Int? {
    var size = winsize()
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
      return nil
    }
    return Int(size.ws_col)
  }

  /// The arguments of the process, the program's name among them, byte by byte.
  static func arguments() -> [[UInt8]] {
    let count = Int(CommandLine.argc)
    var arguments: [[UInt8]] = []
    for index in 0..<count {
      guard let text = unsafe CommandLine.unsafeArgv[index] else { break }
      arguments.append(unsafe [UInt8](UnsafeRawBufferPointer(start: text, count: strlen(text))))
    }
    return arguments
  }

  /// A variable of the environment.
  static func environment(_ name: String) -> String? {
    guard let text = unsafe getenv(name) else { return nil }
    return unsafe String(cString: text)
  }

  /// The path of the running executable; nil when the system does not say.
  static func executablePath() -> String? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    #if canImport(Darwin)
      var size = UInt32(buffer.count)
      let result = unsafe buffer.withUnsafeMutableBytes { bytes in
        unsafe _NSGetExecutablePath(
          bytes.baseAddress?.assumingMemoryBound(to: CChar.self), &size)
      }
      guard result == 0, let end = buffer.firstIndex(of: 0) else { return nil }
    #else
      let end = unsafe buffer.withUnsafeMutableBytes { bytes -> Int in
        guard let base = bytes.baseAddress else { return 0 }
        return unsafe readlink(
          "/proc/self/exe", base.assumingMemoryBound(to: CChar.self), bytes.count)
      }
      guard end > 0, end < buffer.count else { return nil }
    #endif
    return String(validating: buffer[..<end], as: UTF8.self)
  }

  /// The directory that relative paths begin at; nil when the system does not say.
  static func workingDirectory() -> String? {
    guard let text = unsafe getcwd(nil, 0) else { return nil }
    defer { unsafe free(text) }
    return unsafe String(validatingCString: text)
  }

  /// Replaces the process by another program, which keeps its streams and variables.
  static func execute(_ path: String, _ arguments: [String]) throws(Failure) {
    #if os(tvOS) || os(watchOS)
      // These systems prohibit the call, and nobody runs the tool there: it only has to compile.
      throw Failure(number: ENOTSUP)
    #else
      var pointers: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) }
      unsafe pointers.append(nil)
      _ = unsafe execv(path, &pointers)
      let number = errno
      for index in unsafe pointers.indices { unsafe free(pointers[index]) }
      throw Failure(number: number)
    #endif
  }

  /// Sleeps, unless a signal comes.
  static func sleep(milliseconds: Int) {
    var time = timespec(
      tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
    unsafe nanosleep(&time, nil)
  }

  /// Ends the process without another word.
  static func exit(_ status: Int32) -> Never { _exit(status) }
}

// MARK: - Signals

/// The state that the handler and the program share.
private enum SignalState {
  /// How often the user has asked to stop.
  static let requests = Atomic<Int>(0)
  /// Whether the program stops by itself when asked, rather than at once.
  static let isGraceful = Atomic<Bool>(false)
}

extension SystemCalls {
  /// Whether the user has pressed Ctrl-C.
  static var isInterrupted: Bool { SignalState.requests.load(ordering: .relaxed) > 0 }

  /// From now on the program looks at ``isInterrupted`` itself; a second Ctrl-C ends it at once.
  static func stopGracefully() { SignalState.isGraceful.store(true, ordering: .relaxed) }

  /// Makes a closed pipe an error of the write, and Ctrl-C an exit with `status`.
  static func installHandlers() {
    // Touched once here, so that the handler does not initialise them.
    SignalState.requests.store(0, ordering: .relaxed)
    SignalState.isGraceful.store(false, ordering: .relaxed)
    signal(SIGPIPE, SIG_IGN)
    signal(SIGINT) { _ in
      let earlier = SignalState.requests.add(1, ordering: .relaxed).oldValue
      if earlier > 0 || !SignalState.isGraceful.load(ordering: .relaxed) { _exit(130) }
    }
    // A worker thread that starts the tool may hand down a mask that blocks everything.
    var mask = sigset_t()
    unsafe sigemptyset(&mask)
    unsafe sigaddset(&mask, SIGINT)
    unsafe pthread_sigmask(SIG_UNBLOCK, &mask, nil)
  }
}
