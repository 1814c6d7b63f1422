package final class Image: Sendable {
  package init(opening file: any File) throws(IndexError) { throw .limitExceeded }
  package var storeID: [UInt8] { [] }
  package var imageID: UInt64 { 0 }
  package var sequence: UInt64 { 0 }
  package var userInfo: [UInt8] { [] }
}
extension Index { package convenience init(image: Image?, seed: UInt64) { self.init(seed: seed) } }
