public import TidemarkEngine

/// A call on a ``SimulatedFileSystem``, as its trace shows it.
public struct SimulatedCall: Sendable, Hashable, CustomStringConvertible {
  /// The operation of the call, such as write or sync.
  public var operation: FileSystemError.Operation
  /// The path of the file or directory of the call.
  public var path: String
  /// The offset in the file in bytes, or the new length for truncate and allocate.
  public var offset: Int
  /// How many bytes the call was asked to transfer.
  public var length: Int
  /// Whether the call can change the disk.
  public var isMutating: Bool

  init(
    _ operation: FileSystemError.Operation, _ path: String, offset: Int = 0, length: Int = 0,
    isMutating: Bool = false
  ) {
    self.operation = operation
    self.path = path
    self.offset = offset
    self.length = length
    self.isMutating = isMutating
  }

  /// The call as one line of text.
  public var description: String {
    switch operation {
    case .read, .write: "\(operation.rawValue) \(path) \(offset)+\(length)"
    case .truncate, .allocate: "\(operation.rawValue) \(path) \(offset)"
    default: "\(operation.rawValue) \(path)"
    }
  }

  /// A number that equal calls share.
  var fingerprint: UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in operation.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    for byte in path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    hash = (hash ^ UInt64(bitPattern: Int64(offset))) &* 0xff51_afd7_ed55_8ccd
    hash = (hash ^ (hash >> 32) ^ UInt64(bitPattern: Int64(length))) &* 0xff51_afd7_ed55_8ccd
    return hash ^ (hash >> 29)
  }
}
