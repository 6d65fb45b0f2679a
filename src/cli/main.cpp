#include "cli/commands.hpp"
#include "model/base/system/standard_streams.hpp"

int main(int count, char** arguments) {
  stratplan::prepare_standard_streams();
  return stratplan::run_program({arguments, arguments + count});
}
