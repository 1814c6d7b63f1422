internal import TidemarkEngine

/// An open file on a simulated disk; its state lies in the machine, so that a crash can take it.
final class SimulatedFile: File, Sendable {
  private let system: SimulatedFileSystem
  private let path: String
  private let id: Int

  init(system: SimulatedFileSystem, path: String, id: Int) {
    self.system = system
    self.path = path
    self.id = id
  }

  func length() throws(FileSystemError) -> Int {
    try system.perform(SimulatedCall(.length, path)) { (state, _) throws(SimulatedErrno) in
      try state.length(id)
    }
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    let count = buffer.byteCount
    let call = SimulatedCall(.read, path, offset: offset, length: count)
    let bytes = try system.perform(call) { (state, fault) throws(SimulatedErrno) in
      try state.read(id, count, at: offset, fault)
    }
    bytes.store(into: &buffer)
    return bytes.count
  }

  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    let copy = [UInt8](copying: bytes)
    let call = SimulatedCall(.write, path, offset: offset, length: copy.count, isMutating: true)
    return try system.perform(call) { (state, fault) throws(SimulatedErrno) in
      try state.write(id, copy, at: offset, fault)
    }
  }

  func truncate(to length: Int) throws(FileSystemError) {
    let call = SimulatedCall(.truncate, path, offset: length, isMutating: true)
    try system.perform(call) { (state, _) throws(SimulatedErrno) in
      try state.truncate(id, to: length)
    }
  }

  func allocate(to length: Int) throws(FileSystemError) {
    let call = SimulatedCall(.allocate, path, offset: length, isMutating: true)
    try system.perform(call) { (state, _) throws(SimulatedErrno) in
      try state.allocate(id, to: length)
    }
  }

  func sync() throws(FileSystemError) {
    let call = SimulatedCall(.sync, path, isMutating: true)
    try system.perform(call) { (state, fault) throws(SimulatedErrno) in
      try state.sync(id, fault)
    }
  }

  func close() { system.machine.withLock { $0.close(id) } }
}

/// A lock on a simulated disk.
final class SimulatedLock: FileLock, Sendable {
  private let system: SimulatedFileSystem
  private let path: String
  private let id: Int

  var isCurrent: Bool { system.machine.withLock { $0.holdsLock(id, at: path) } }

  init(system: SimulatedFileSystem, path: String, id: Int) {
    self.system = system
    self.path = path
    self.id = id
  }

  func release() { system.machine.withLock { $0.unlock(id) } }
}
